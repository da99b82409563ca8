// Light, dark or as the system has it. Loaded before the first paint, so that no page flashes: so it is no module.

(() => {
  const ORDER = ["system", "light", "dark"];
  const KEY = "shardqa.theme";
  const root = document.documentElement;

  const kept = () => {
    try {
      const value = localStorage.getItem(KEY);
      return ORDER.includes(value) ? value : "system";
    } catch {
      return "system"; // the browser keeps nothing for this site
    }
  };

  const apply = (theme) => {
    if (theme === "system") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", theme);
  };

  const install = () => {
    const button = document.getElementById("theme");
    if (!button) return;
    const state = Object.assign(document.createElement("span"), { className: "state" });
    const show = () => {
      state.textContent = `: ${kept()}`;
      button.setAttribute("aria-label", `Theme: ${kept()}`);
    };
    button.replaceChildren("Theme", state);
    button.hidden = false;
    button.addEventListener("click", () => {
      const next = ORDER[(ORDER.indexOf(kept()) + 1) % ORDER.length];
      try {
        localStorage.setItem(KEY, next);
      } catch {
        // it holds until the page is left
      }
      apply(next);
      show();
    });
    show();
  };

  apply(kept());
  addEventListener("DOMContentLoaded", install);
})();
