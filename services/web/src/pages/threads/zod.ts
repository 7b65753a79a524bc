/** Keeps zod from compiling code, which the content security policy refuses. Imported before everything that uses zod. */
import { config } from "zod";

config({ jitless: true });
