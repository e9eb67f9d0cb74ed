// Keys for everything that is done often; text fields and lists keep theirs.

export function listen(page) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const kind = event.target.tagName;
    if (kind === "SELECT" || (kind === "INPUT" && event.target.type !== "checkbox")) return;
    if (document.querySelector("dialog[open]")) return;
    const act = action(event, page);
    if (!act) return;
    if (event.key === " " && kind === "BUTTON") return; // a button is pressed by it
    event.preventDefault();
    act();
  });
}

function action(event, page) {
  if (event.key === "?") return () => document.getElementById("help").showModal();
  const letter = event.key.toLowerCase();
  if (letter === "t") return () => page.open("training");
  if (letter === "e") return () => page.open("episode");
  if (!page.ready()) return null;
  const digit = /^Digit([1-9])$/.exec(event.code)?.[1];
  if (digit) {
    const head = Number(digit) - 1;
    if (head >= page.heads()) return null;
    return () => (event.shiftKey ? page.toggleOff(head) : page.force(head));
  }
  return {
    " ": () => page.play(),
    ArrowLeft: () => page.step(-1),
    ArrowRight: () => page.step(1),
    Home: () => { page.pause(); page.go(0); },
    End: () => { page.pause(); page.go(-1); },
    n: () => page.nextStart(),
  }[event.key.length === 1 ? letter : event.key];
}
