/** Chooses between dark and light: as the system says, unless a person chose. Only this choice is stored. */
import { useCallback, useState } from "react";

/** Choice of a theme. */
export type Theme = "system" | "dark" | "light";

const KEY = "sluice.theme";
const ORDER: Theme[] = ["system", "dark", "light"];

function stored(): Theme {
  try {
    const value = window.localStorage.getItem(KEY);
    return value === "dark" || value === "light" ? value : "system";
  } catch {
    return "system";
  }
}

/** Applies the stored choice to the document. */
export function applyTheme(theme: Theme = stored()): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

/** Returns the theme, and a function that chooses the next one. */
export function useTheme(): { theme: Theme; next: () => void } {
  const [theme, setTheme] = useState<Theme>(stored);
  const next = useCallback(() => {
    const following = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length] ?? "system";
    try {
      if (following === "system") window.localStorage.removeItem(KEY);
      else window.localStorage.setItem(KEY, following);
    } catch {
      // A browser without storage keeps the choice until the page is left.
    }
    applyTheme(following);
    setTheme(following);
  }, [theme]);
  return { theme, next };
}
