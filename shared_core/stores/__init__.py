"""How each vector store hands back stored vectors: functions over the store's own client, no framework in sight."""
