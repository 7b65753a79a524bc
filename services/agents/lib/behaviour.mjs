// Finds the texts that say how an agent behaves: the behaviour files of its entry, and the instructions of a project.
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";

// Files of the entry's `behaviour_dir`. `sluice` writes them into the workspace.
const BEHAVIOUR_FILES = ["AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "IDENTITY.md", "MEMORY.md"];

// Returns the paths of behaviour files in `workspace` and of `more` texts, and the directory of a project: `cwd`, if files were
// copied in.
export function readInstructions(workspace, cwd, more = []) {
  const behaviourFiles = [...existing(workspace, BEHAVIOUR_FILES), ...more];
  return { behaviourFiles, project: path.resolve(cwd) === path.resolve(workspace) ? null : cwd };
}

// Returns the first of `names` that is in the project, as a list of at most one path.
export const projectFile = ({ project }, names) => (project === null ? [] : existing(project, names).slice(0, 1));

// Returns behaviour files as one text. Each begins with its name.
export function joinBehaviour(files) {
  return files.map((file) => `# ${path.basename(file)}\n\n${readFileSync(file, "utf8").trim()}\n`).join("\n");
}

const existing = (directory, names) => names.map((name) => path.join(directory, name)).filter((file) => existsSync(file));
