//! Lists the files that some program runs or obeys by itself, with the sources that say so. Names are folded, and
//! separated by blanks.
//!
//! A file is listed if entering, opening or reading the directory is enough to run what it says. So it is if a login is
//! enough, where the directory is a home. What a build, a test or an installation of the project runs, such as `Makefile`
//! or `build.rs`, is code like all other.

/// Program that would run what a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProtectedBy(pub(crate) &'static str);

const HOOK: ProtectedBy = ProtectedBy("a hook, which git runs");
const VERSIONS: ProtectedBy =
    ProtectedBy("read by a version control program, which may fetch or run what it names");
const DIRECTORY: ProtectedBy = ProtectedBy("read when a shell enters the directory");
const SHELL: ProtectedBy = ProtectedBy("run by a shell or terminal at its start");
const LOGIN: ProtectedBy = ProtectedBy("read at a login, or decides who may log in");
const SESSION: ProtectedBy = ProtectedBy("read by the programs of a session, which may run it");
const PROGRAMS: ProtectedBy = ProtectedBy("a place from which shells take programs");
const INTERPRETER: ProtectedBy = ProtectedBy("run by an interpreter or debugger at its start");
const EDITOR: ProtectedBy = ProtectedBy("read by an editor, which may run it");
const PACKAGES: ProtectedBy = ProtectedBy("read by a package manager, which may run what it names");
const TOOL: ProtectedBy = ProtectedBy("read by a program, which may run what it names");
const SERVER: ProtectedBy = ProtectedBy("read by a web server, which may run it");
const CI: ProtectedBy = ProtectedBy("run by continuous integration");
const AGENT: ProtectedBy = ProtectedBy("read by coding agents, which may run it");
pub(super) const ORDERS: ProtectedBy =
    ProtectedBy("read by coding agents, which do what it says (people edit it, too: read the change first)");

/// Names of files and directories at any depth.
pub(super) const NAMES: &[(ProtectedBy, &str)] = &[
    // githooks(5) with `core.hooksPath`; pages of husky, lefthook, pre-commit and overcommit.
    (
        HOOK,
        ".husky .huskyrc .githooks .git-hooks .lefthook lefthook.yml lefthook.yaml lefthook.toml \
         lefthook.json .lefthook.yml .lefthook.yaml lefthook-local.yml lefthook-local.yaml \
         .lefthook-local.yml .pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml \
         .pre-commit-hooks.yml .overcommit.yml",
    ),
    // gitmodules(5), gitattributes(5), git-config(1); hgrc(5), section hooks; Subversion's book, "Runtime
    // Configuration Area"; pages of Breezy, Jujutsu, Sapling and tig.
    (VERSIONS, ".gitmodules .gitattributes .gitconfig .hg .hgrc .svn .subversion .bzr .jj .sl .cvsrc .tigrc"),
    // direnv(1), autoenv's page, mise's "Configuration", rvm's "rvmrc", ondir(1).
    (DIRECTORY, ".envrc .direnv .autoenv mise.toml mise.local.toml .rtx.toml .rvmrc .ondirrc"),
    // Startup files of ksh(1), mksh(1), sh(1) of BSD, tcsh(1), rc(1), es(1), xonsh; readline(3); lesspipe(1),
    // lesskey(1); tmux(1), screen(1), WezTerm's "Configuration"; about_Profiles of PowerShell. For bash and zsh see
    // the beginnings.
    (
        SHELL,
        ".profile .kshrc .mkshrc .shrc .shinit .cshrc .tcshrc .login .logout .rcrc .esrc .xonshrc .oh-my-zsh \
         .inputrc .lessfilter .lesskey .tmux.conf .tmux .screenrc .wezterm.lua profile.ps1 \
         microsoft.powershell_profile.ps1 profile.d",
    ),
    // sshd(8), section files; ssh_config(5); rhosts(5), k5login(5), pam_env(8); local(8) of Postfix on .forward;
    // procmailrc(5), dot-qmail(5), maildropfilter(7); cron(8), sudoers(5).
    (
        LOGIN,
        ".ssh .rhosts .shosts .k5login .pam_environment .forward .procmailrc .qmail .mailfilter \
         cron.d cron.hourly cron.daily cron.weekly cron.monthly sudoers.d",
    ),
    // XDG Base Directory, Desktop Application Autostart and D-Bus specifications; systemd.unit(5),
    // environment.d(5); startx(1), Xsession(5), xscreensaver(1); launchd.plist(5); manuals of the window managers.
    (
        SESSION,
        ".config .local .xinitrc .xserverrc .xsession .xsessionrc .xprofile .gnomerc .xscreensaver \
         .xbindkeysrc .mailcap .i3 .xmonad .fluxbox .icewm .fvwm .fvwm2rc xinitrc.d launchagents \
         launchdaemons autorun.inf autorun.sh .autorun",
    ),
    // Installation pages, which add these to the path of programs.
    (
        PROGRAMS,
        ".rustup .nvm .pyenv .rbenv .rvm .asdf .sdkman .volta .deno .bun .krew .dotnet .jenv .goenv .nodenv \
         .opam .cabal .stack .ghcup .elan .juliaup .nix-profile .nix-defexpr .linuxbrew",
    ),
    // Python's modules site and pdb, IPython's "startup files", Jupyter's "Configuration"; ?Startup of R; irb(1),
    // pry, byebug; GHC's "The .ghci file"; ocaml(1), utop(1); erl(1), IEx, Julia's "startup.jl"; perldebug(1);
    // guile(1), racket, sbcl(1), clisp(1), ecl(1); octave(1), gnuplot(1), gp(1), tclsh(1); psql(1), sqlite3(1),
    // mysql(1), mongosh; gdb(1), lldb(1), radare2(1).
    (
        INTERPRETER,
        "sitecustomize.py usercustomize.py site-packages .pdbrc .pdbrc.py .pythonrc .pythonrc.py .ipython \
         .jupyter .rprofile .renviron rprofile.site .irbrc .pryrc .byebugrc .rdebugrc .ghci .ghc .ocamlinit \
         .utoprc .erlang .iex.exs .julia .perldb .re.pl .guile .racketrc .sbclrc .clisprc .eclrc .octaverc \
         .gnuplot .gprc .maxima .sage .tclshrc .wishrc .expect.rc .psqlrc .sqliterc .duckdbrc .my.cnf \
         .mongorc.js .mongoshrc.js .gdbinit .gdbearlyinit .lldbinit .radare2rc",
    ),
    // vim(1) and `exrc`, Neovim's `exrc`, vim-localvimrc, YouCompleteMe; Emacs manual, "Init File" and "Directory
    // Variables"; nanorc(5), joe(1); Visual Studio Code's "Workspace Trust", "Dev Containers"; pages of JetBrains,
    // Zed, Helix, Eclipse ("External tools builders") and cloud workspaces. Language servers of pylint, RuboCop,
    // flake8 and mypy load plugins.
    (
        EDITOR,
        ".vim .vimrc _vimrc vimfiles .gvimrc _gvimrc .exrc _exrc .lvimrc .local.vimrc .vimspector.json \
         .nvim.lua .nvimrc .nvim .ycm_extra_conf.py .dir-locals.el .dir-locals-2.el .spacemacs .spacemacs.d \
         .doom.d .gnus .gnus.el .nanorc .joerc .idea .fleet .run .zed .helix .lapce .vs .nova .atom .theia \
         .swiftpm .project .externaltoolbuilders .kateproject .devcontainer .devcontainer.json .gitpod.yml \
         .gitpod.dockerfile .codesandbox .stackblitzrc .replit .idx .pylintrc pylintrc .rubocop.yml \
         .solargraph.yml .flake8 mypy.ini .mypy.ini",
    ),
    // npm's .npmrc (`script-shell`, `node-options`), Yarn's `yarnPath` and plugins, .pnpmfile.cjs, Bun's `preload`;
    // Cargo's "Configuration" (`runner`, `rustc-wrapper`), rustup's "Overrides" (`path`); pip, uv, conda,
    // distutils; RubyGems, Bundler; Maven's "Configuring Maven", Gradle's "Initialization Scripts", sbt; Composer,
    // opam, asdf's hooks, Nix.
    (
        PACKAGES,
        ".npmrc .yarn .pnpmfile.cjs .pnpmfile.mjs bunfig.toml .bunfig.toml .cargo rust-toolchain \
         rust-toolchain.toml .pip pip.conf pip.ini .pypirc .pydistutils.cfg uv.toml .condarc .gemrc .gem \
         .bundle .m2 .mvn .mavenrc .gradle .ivy2 .sbt .sbtopts .sbtrc .jvmopts .composer .asdfrc \
         .nixpkgs .lein .clojure",
    ),
    // wget(1) `use_askpass`, curl(1), ftp(1) on .netrc; mailrc, mutt; docker's "Credential helpers" and plugins,
    // kubeconfig's `exec`, `credential_process` of AWS; terraform's "CLI Configuration"; ansible.cfg; gpg-agent(1),
    // rtorrent(1), task hooks.
    (
        TOOL,
        ".wgetrc .curlrc .netrc .mailrc .muttrc .mutt .neomuttrc .elinks .w3m .irssi .weechat .newsboat \
         .taskrc .task .rtorrent.rc .ackrc .gnupg .docker .kube .aws .terraformrc .terraform.d .terraform \
         ansible.cfg .ansible.cfg .ansible .vagrant.d .tern-project ",
    ),
    // Apache's "AllowOverride", PHP's ".user.ini files", IIS's web.config.
    (SERVER, ".htaccess .user.ini web.config"),
    // Pages of the services about their configuration file.
    (
        CI,
        ".github .gitlab .gitlab-ci.yml .circleci .travis.yml .drone.yml .buildkite .forgejo .gitea \
         bitbucket-pipelines.yml .cirrus.yml .cirrus.star appveyor.yml .appveyor.yml .semaphore .build.yml \
         .builds wercker.yml .teamcity bamboo-specs buildspec.yml buildspec.yaml cloudbuild.yaml \
         cloudbuild.yml codemagic.yaml bitrise.yml screwdriver.yaml .tekton .prow .prow.yaml zuul.d .zuul.d \
         zuul.yaml .zuul.yaml .packit.yaml renovate.json renovate.json5 netlify.toml vercel.json render.yaml \
         heroku.yml .readthedocs.yml .readthedocs.yaml",
    ),
    // Documentation of each agent. Those that Sluice ships are among them.
    (
        AGENT,
        ".claude .mcp.json .cursor .codex .qwen .opencode opencode.json opencode.jsonc .gemini .windsurf \
         .continue .openclaw .cline .roo .kiro .junie .agents .amp .augment .goose .crush crush.json \
         .crush.json .factory .trae .amazonq .copilot .kilocode .openhands .tabnine .warp",
    ),
    (
        ORDERS,
        "claude.md claude.local.md agents.md agents.override.md agent.md gemini.md qwen.md soul.md \
         heartbeat.md warp.md .cursorrules .windsurfrules .clinerules .roorules .kilocoderules .goosehints \
         .rules",
    ),
];

/// Names of files that agents read at the top of a directory. Deeper such names are common.
pub(super) const TOP_NAMES: [&str; 5] = ["memory.md", "tools.md", "identity.md", "user.md", "bootstrap.md"];

/// Beginnings of names at any depth.
pub(super) const BEGINNINGS: &[(ProtectedBy, &str)] = &[
    (DIRECTORY, ".env .mise"),
    // bash(1), "Invocation", and its completion; zsh(1), "Startup/Shutdown Files", with compiled forms such as
    // .zshrc.zwc.
    (SHELL, ".bash .zsh .zprofile .zlogin .zlogout"),
    // Emacs manual, "Init File"; ESLint, Prettier and Stylelint: their configuration is code or names plugins.
    (
        EDITOR,
        ".emacs .vscode .eslintrc eslint.config. .prettierrc prettier.config. .stylelintrc stylelint.config.",
    ),
    (PACKAGES, ".yarnrc"),
    (CI, "azure-pipelines jenkinsfile .woodpecker .gitlab-ci .renovaterc"),
    (AGENT, ".aider"),
];

/// Endings of names at any depth.
pub(super) const ENDINGS: &[(ProtectedBy, &str)] = &[(EDITOR, ".code-workspace .sublime-project")];
