//! Lists the agents that ship as recipes: package, version, and the files that make an image of it.

use platform_core::json::{self, Bounds};
use serde::Deserialize;

use super::{Error, ImageContext, PackageName, Programs};

/// A file of a build context: its path there, and its text.
pub(crate) type ContextFile = (&'static str, &'static str);

/// Files that every image has.
const SHARED_FILES: [ContextFile; 12] = [
    ("Dockerfile", include_str!("../../../../services/agents/Dockerfile")),
    ("build/fetch.mjs", include_str!("../../../../services/agents/fetch.mjs")),
    ("build/npm.json", include_str!("../../../../services/agents/npm.json")),
    ("agent/main.mjs", include_str!("../../../../services/agents/main.mjs")),
    ("agent/lib/behaviour.mjs", include_str!("../../../../services/agents/lib/behaviour.mjs")),
    ("agent/lib/conversation.mjs", include_str!("../../../../services/agents/lib/conversation.mjs")),
    ("agent/lib/errors.mjs", include_str!("../../../../services/agents/lib/errors.mjs")),
    ("agent/lib/events.mjs", include_str!("../../../../services/agents/lib/events.mjs")),
    ("agent/lib/host_tools.mjs", include_str!("../../../../services/agents/lib/host_tools.mjs")),
    ("agent/lib/lines.mjs", include_str!("../../../../services/agents/lib/lines.mjs")),
    ("agent/lib/run.mjs", include_str!("../../../../services/agents/lib/run.mjs")),
    ("agent/lib/state.mjs", include_str!("../../../../services/agents/lib/state.mjs")),
];

/// Files of one agent, as they are in the repository.
struct Sources {
    recipe: &'static str,
    adapter: &'static str,
    entry: &'static str,
    requirements: Option<&'static str>,
}

macro_rules! sources {
    ($name:literal, $requirements:expr) => {
        Sources {
            recipe: include_str!(concat!("../../../../services/agents/", $name, "/recipe.json")),
            adapter: include_str!(concat!("../../../../services/agents/", $name, "/adapter.mjs")),
            entry: include_str!(concat!("../../../../services/agents/", $name, "/entry.toml")),
            requirements: $requirements,
        }
    };
}

/// All agents that ship.
const CATALOG: [Sources; 5] = [
    sources!("claude-code", None),
    sources!("codex", None),
    sources!("opencode", None),
    sources!("qwen-code", None),
    sources!("aider", Some(include_str!("../../../../services/agents/aider/requirements.txt"))),
];

/// Tools that an image has besides those of its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageTools {
    /// Those that builds and tests of most projects need: a C compiler, make, Python, npm, jq, ripgrep, unzip.
    Common,
    /// None.
    Slim,
}

impl ImageTools {
    /// Returns the size of the download.
    pub(crate) const fn download_mib(self) -> u32 {
        match self {
            Self::Common => 60,
            Self::Slim => 0,
        }
    }

    const fn variant(self) -> &'static str {
        match self {
            Self::Common => "tools",
            Self::Slim => "slim",
        }
    }
}

/// Recipe of an agent's image.
#[derive(Debug, Deserialize)]
pub(crate) struct Recipe {
    /// Name, as `sluice agents add` takes it.
    pub(crate) name: String,
    /// Name for people.
    pub(crate) title: String,
    /// Package in its registry.
    pub(crate) package: String,
    /// Registry of the package: `npm` or `pypi`.
    pub(crate) registry: String,
    /// Pinned version.
    pub(crate) version: String,
    /// Size of the download.
    pub(crate) download_mib: u32,
    /// Kinds of processors that the package is for, as Rust names them.
    pub(crate) platforms: Vec<String>,
    /// Programs that the image needs besides Node.
    pub(crate) tools: Vec<String>,
    /// Files of this agent in the build context.
    #[serde(skip)]
    pub(crate) files: Vec<ContextFile>,
    /// Entry of the configuration, with `{image}` in place of the image.
    #[serde(skip)]
    pub(crate) entry: &'static str,
}

impl Recipe {
    /// Returns all recipes.
    pub(crate) fn all() -> Vec<Self> {
        CATALOG.iter().map(Self::read).collect()
    }

    fn read(sources: &Sources) -> Self {
        let mut recipe: Self =
            json::from_str(sources.recipe, Bounds::STORED).expect("it is part of this program");
        recipe.entry = sources.entry;
        recipe.files = SHARED_FILES.to_vec();
        recipe
            .files
            .extend([("build/recipe.json", sources.recipe), ("agent/adapter/adapter.mjs", sources.adapter)]);
        recipe.files.extend(sources.requirements.map(|text| ("build/requirements.txt", text)));
        recipe
    }

    /// Checks that the package is for this machine.
    ///
    /// # Errors
    /// [`Error::Platform`] if it is not.
    pub(crate) fn check_platform(&self) -> Result<(), Error> {
        self.check_platform_of(std::env::consts::ARCH)
    }

    fn check_platform_of(&self, machine: &'static str) -> Result<(), Error> {
        if self.platforms.iter().any(|platform| platform == machine) {
            return Ok(());
        }
        Err(Error::Platform { agent: self.title.clone(), machine, known: self.platforms.join(", ") })
    }

    /// Returns what its image is built from, with these packages besides its own.
    pub(crate) fn context(&self, tools: ImageTools, packages: &[PackageName]) -> ImageContext<'_> {
        let packages: Vec<_> = packages.iter().map(PackageName::to_string).collect();
        let arguments = vec![
            ("TOOLS", self.tools.join(" ")),
            ("PACKAGES", packages.join(" ")),
            ("AGENT", format!("{}@{}", self.name, self.version)),
            ("VARIANT", tools.variant().to_owned()),
        ];
        let files = &self.files;
        ImageContext { name: &self.name, files, arguments, programs: Programs::IfInstalled }
    }

    /// Returns the id of its agent.
    pub(crate) fn agent(&self) -> String {
        format!("sandbox:{}", self.name)
    }

    /// Returns the name of its image, unless another is chosen.
    pub(crate) fn image(&self, tools: ImageTools) -> String {
        let Self { name, version, .. } = self;
        match tools {
            ImageTools::Common => format!("sluicegate/{name}:{version}"),
            ImageTools::Slim => format!("sluicegate/{name}:{version}-slim"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_for_some_machines_only() {
        let recipes = Recipe::all();
        let refused = |machine| {
            let refused = recipes.iter().filter(|recipe| recipe.check_platform_of(machine).is_err());
            refused.map(|recipe| recipe.name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!([refused("x86_64"), refused("aarch64")], [vec![], vec!["opencode", "aider"]]);
        let error = recipes[4].check_platform_of("aarch64").unwrap_err().to_string();
        assert_eq!(error, "aider has no package for aarch64, only for x86_64");
    }

    #[test]
    fn recipes_pin_their_packages() {
        let recipes = Recipe::all();
        let names: Vec<_> = recipes.iter().map(|recipe| recipe.name.as_str()).collect();
        assert_eq!(names, ["claude-code", "codex", "opencode", "qwen-code", "aider"]);
        for recipe in &recipes {
            let pinned = |(path, text): &ContextFile| match *path {
                "build/recipe.json" => text.contains("sha512-"),
                "build/requirements.txt" => text.lines().skip(1).all(|line| line.contains("--hash=sha256:")),
                _ => false,
            };
            assert!(recipe.files.iter().any(pinned), "{}", recipe.name);
            let heading = format!("[agents.\"{}\"]", recipe.agent());
            assert!(recipe.entry.starts_with(&heading), "{}", recipe.entry);
        }
    }
}
