// Light, dark, or as the system has it. This is no module, so that it runs before anything is painted.

"use strict";

{
  const THEMES = ["system", "light", "dark"];
  const stored = localStorage.getItem("threadmark-theme");
  let theme = THEMES.includes(stored) ? stored : "system";
  document.documentElement.dataset.theme = theme;

  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const name = () => {
      button.setAttribute("aria-label", `Colours: ${theme}`);
      button.title = `Colours: ${theme} (click to change)`;
    };
    name();
    button.addEventListener("click", () => {
      theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
      document.documentElement.dataset.theme = theme;
      localStorage.setItem("threadmark-theme", theme);
      name();
    });
  });
}
