//! vectors lists the programs that an agent plants, each with the command of a careless host that runs it.

use std::fs;

use super::commands::{add, ask_credential, attributes, diff, fetch_origin, hook, in_terminal, push, status};
use crate::{
    agent::{Agent, done, fed},
    canary::Canary,
    world::World,
};

/// Program in an agent's repository.
pub(super) struct Vector {
    pub(super) name: &'static str,
    /// Plants it, in a repository with one commit of the agent.
    pub(super) plant: fn(&Agent, &Canary),
    /// Command of a careless host that runs it.
    pub(super) naive: fn(&Agent, &World),
}

pub(super) const VECTORS: &[Vector] = &[
    Vector { name: "hook pre-push", plant: |a, c| hook(a, c, "pre-push"), naive: push },
    Vector {
        name: "hook reference-transaction",
        plant: |a, c| hook(a, c, "reference-transaction"),
        naive: |a, _| drop(a.naive(&["branch", "other"])),
    },
    Vector { name: "hook post-index-change", plant: |a, c| hook(a, c, "post-index-change"), naive: add },
    Vector {
        name: "hook post-checkout",
        plant: |a, c| hook(a, c, "post-checkout"),
        naive: |a, _| drop(a.naive(&["checkout", "--quiet", "-b", "other"])),
    },
    Vector {
        name: "hook pre-commit",
        plant: |a, c| hook(a, c, "pre-commit"),
        naive: |a, _| drop(a.naive(&["commit", "--allow-empty", "-m", "x"])),
    },
    Vector {
        name: "core.hooksPath",
        plant: |a, c| {
            hook(a, c, "x/pre-push");
            a.config("core.hooksPath", &a.dir.join(".git/hooks/x").display().to_string());
        },
        naive: push,
    },
    Vector { name: "core.fsmonitor", plant: |a, c| a.config("core.fsmonitor", &c.shown()), naive: status },
    Vector {
        name: "filter clean",
        plant: |a, c| {
            attributes(a, "* filter=x\n");
            a.config("filter.x.clean", &c.shown());
        },
        naive: add,
    },
    Vector {
        name: "filter smudge",
        plant: |a, c| {
            attributes(a, "* filter=x\n");
            a.config("filter.x.smudge", &c.shown());
        },
        naive: |a, _| {
            fs::remove_file(a.dir.join("README.md")).expect("it was there");
            a.naive(&["checkout", "--", "README.md"]);
        },
    },
    Vector {
        name: "filter process",
        plant: |a, c| {
            attributes(a, "* filter=x\n");
            a.config("filter.x.process", &c.shown());
        },
        naive: add,
    },
    Vector { name: "diff.external", plant: |a, c| a.config("diff.external", &c.shown()), naive: diff },
    Vector {
        name: "diff driver",
        plant: |a, c| {
            attributes(a, "* diff=x\n");
            a.config("diff.x.command", &c.shown());
        },
        naive: diff,
    },
    Vector {
        name: "textconv",
        plant: |a, c| {
            attributes(a, "* diff=x\n");
            a.config("diff.x.textconv", &c.shown());
        },
        naive: diff,
    },
    Vector {
        name: "merge driver",
        plant: |a, c| {
            attributes(a, "* merge=x\n");
            a.config("merge.x.driver", &c.shown());
        },
        naive: |a, _| {
            a.run(&["checkout", "--quiet", "-b", "other", "HEAD~1"]);
            a.write("work.txt", "other\n");
            a.commit("Other");
            a.naive(&["merge", "sandbox/run-1"]);
        },
    },
    Vector {
        name: "core.sshCommand",
        plant: |a, c| {
            a.config("core.sshCommand", &c.shown());
            a.config("remote.origin.url", "ssh://127.0.0.1/x");
        },
        naive: fetch_origin,
    },
    Vector {
        name: "core.gitProxy",
        plant: |a, c| {
            a.config("core.gitProxy", &c.shown());
            a.config("remote.origin.url", "git://127.0.0.1/x");
        },
        naive: fetch_origin,
    },
    Vector {
        name: "remote.receivepack",
        plant: |a, c| {
            a.config("remote.origin.receivepack", &c.shown());
            a.config("remote.origin.url", &a.dir.display().to_string());
        },
        naive: |a, _| drop(a.naive(&["push", "origin", "HEAD:refs/heads/x"])),
    },
    Vector {
        name: "remote.uploadpack",
        plant: |a, c| {
            a.config("remote.origin.uploadpack", &c.shown());
            a.config("remote.origin.url", &a.dir.display().to_string());
        },
        naive: fetch_origin,
    },
    Vector {
        name: "ext transport",
        plant: |a, c| {
            a.config("protocol.ext.allow", "always");
            a.config("remote.origin.url", &format!("ext::{}", c.shown()));
        },
        naive: fetch_origin,
    },
    Vector {
        name: "credential.helper",
        plant: |a, c| a.config("credential.helper", &c.shown()),
        naive: ask_credential,
    },
    Vector {
        name: "core.askPass",
        plant: |a, c| a.config("core.askPass", &c.shown()),
        naive: ask_credential,
    },
    Vector {
        name: "gpg.program at signing",
        plant: |a, c| {
            a.config("gpg.program", &c.shown());
            a.config("commit.gpgSign", "true");
        },
        naive: |a, _| drop(a.naive(&["commit", "--allow-empty", "-m", "x"])),
    },
    Vector {
        name: "gpg.program at reading",
        plant: |a, c| {
            a.config("gpg.program", &c.shown());
            a.config("log.showSignature", "true");
            let raw = a.run(&["cat-file", "commit", "HEAD"]);
            let (head, message) = raw.split_once("\n\n").expect("a commit has a message");
            let mark = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----";
            let signed = a.object("commit", format!("{head}\n{mark}\n\n{message}\n").as_bytes());
            a.run(&["update-ref", "HEAD", &signed]);
        },
        naive: |a, _| drop(a.naive(&["log", "-1"])),
    },
    Vector {
        name: "core.pager",
        plant: |a, c| a.config("core.pager", &c.shown()),
        naive: |a, _| in_terminal(a, "git log"),
    },
    Vector {
        name: "pager of one command",
        plant: |a, c| a.config("pager.diff", &c.shown()),
        naive: |a, _| in_terminal(a, "git diff HEAD~1"),
    },
    Vector {
        name: "core.editor",
        plant: |a, c| a.config("core.editor", &c.shown()),
        naive: |a, _| drop(a.naive(&["commit", "--allow-empty"])),
    },
    Vector {
        name: "sequence.editor",
        plant: |a, c| a.config("sequence.editor", &c.shown()),
        naive: |a, _| drop(a.naive(&["rebase", "-i", "HEAD~1"])),
    },
    Vector {
        name: "alias",
        plant: |a, c| a.config("alias.st", &format!("!{}", c.shown())),
        naive: |a, _| drop(a.naive(&["st"])),
    },
    Vector {
        name: "core.alternateRefsCommand",
        plant: |a, c| {
            a.config("core.alternateRefsCommand", &c.shown());
            let other = a.dir.join("../other");
            done(a.git().args(["init", "--quiet"]).arg(&other));
            let objects = other.join(".git/objects");
            a.plant("objects/info/alternates", &format!("{}\n", objects.display()));
        },
        naive: |a, w| {
            a.config("remote.origin.url", &w.upstream.display().to_string());
            fetch_origin(a, w);
        },
    },
    Vector {
        name: "include.path",
        plant: |a, c| {
            let settings = a.plant("more", &format!("[core]\n\tfsmonitor = {}\n", c.shown()));
            a.config("include.path", &settings.display().to_string());
        },
        naive: status,
    },
    Vector {
        name: "includeIf",
        plant: |a, c| {
            let settings = a.plant("more", &format!("[core]\n\tfsmonitor = {}\n", c.shown()));
            a.config("includeIf.gitdir:/**.path", &settings.display().to_string());
        },
        naive: status,
    },
    Vector {
        name: "config.worktree",
        plant: |a, c| {
            a.config("extensions.worktreeConfig", "true");
            a.plant("config.worktree", &format!("[core]\n\tfsmonitor = {}\n", c.shown()));
        },
        naive: status,
    },
    Vector {
        name: "gitdir file",
        plant: |a, c| {
            let away = a.dir.join("../away");
            fs::rename(a.dir.join(".git"), &away).expect("it is moved");
            fs::write(a.dir.join(".git"), format!("gitdir: {}\n", away.display())).expect("it is written");
            a.config("core.fsmonitor", &c.shown());
        },
        naive: status,
    },
    Vector {
        name: "commondir",
        plant: |a, c| {
            let common = a.dir.join("../common");
            fs::create_dir(&common).expect("it is made");
            for name in ["objects", "refs", "config"] {
                fs::rename(a.dir.join(".git").join(name), common.join(name)).expect("it is moved");
            }
            a.plant("commondir", &format!("{}\n", common.display()));
            a.config("core.fsmonitor", &c.shown());
            let shallow = a.dir.join(".git/shallow");
            fs::rename(shallow, common.join("shallow")).expect("it is moved");
        },
        naive: status,
    },
    Vector {
        name: "submodule update command",
        plant: |a, c| {
            // Only the index has the submodule: a commit with one is refused by its own rule.
            let listed = format!("160000 {}\tsub\n", a.tip());
            fed(a.git().args(["update-index", "--index-info"]), listed.as_bytes());
            a.write(".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ./\n");
            a.config("submodule.sub.url", &a.dir.display().to_string());
            a.config("submodule.sub.update", &format!("!{}", c.shown()));
        },
        naive: |a, _| drop(a.naive(&["-c", "protocol.file.allow=always", "submodule", "update", "--init"])),
    },
];
