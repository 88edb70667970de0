// Sets the theme before the first paint. A classic script, loaded blocking in <head>: the policy allows no inline one.
(() => {
  const KEY = "kilter-theme";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const read = () => {
    try {
      return localStorage.getItem(KEY) || "auto";
    } catch {
      return "auto"; // storage may be forbidden; the page still works
    }
  };
  const apply = () => {
    const choice = read();
    const theme = choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
    const root = document.documentElement;
    root.dataset.themeChoice = choice;
    if (root.dataset.bsTheme === theme) return;
    root.dataset.bsTheme = theme;
    document.dispatchEvent(new CustomEvent("kilter:theme", { detail: { theme } }));
  };
  window.kilterTheme = {
    read,
    choose(choice) {
      try {
        localStorage.setItem(KEY, choice);
      } catch {
        // as above: the choice then lasts for this page only
      }
      document.documentElement.dataset.themeChoice = choice;
      apply();
    },
  };
  dark.addEventListener("change", apply);
  window.addEventListener("storage", (event) => event.key === KEY && apply());
  apply();
})();
