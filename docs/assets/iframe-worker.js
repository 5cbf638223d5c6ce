// Browsers start no worker for a page that was opened from a folder. The site's search then runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.loaded = new Promise((resolve) => {
        const script = inside.document.createElement("script");
        script.onload = resolve;
        script.src = url;
        inside.document.body.append(script);
      });
    }

    async postMessage(data) {
      await this.loaded;
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
