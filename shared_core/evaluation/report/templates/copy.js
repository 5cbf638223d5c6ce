// Buttons that copy the lines of code beside them.
for (const button of document.querySelectorAll("button.copy")) {
  const label = button.firstChild, lines = button.parentElement.querySelector("pre");
  button.hidden = false;
  button.addEventListener("click", async () => {
    let copied = true;
    try {
      await navigator.clipboard.writeText(lines.textContent);
    } catch {
      // Some browsers keep the clipboard from pages in files. The lines stay selected, for the keyboard.
      getSelection().selectAllChildren(lines);
      copied = document.execCommand("copy");
    }
    label.textContent = copied ? "Copied" : "Press Ctrl+C";
    document.getElementById("copied").textContent = copied ? "The lines are copied." : "The lines are selected: press Ctrl+C.";
    setTimeout(() => { label.textContent = "Copy"; }, 2000);
  });
}
