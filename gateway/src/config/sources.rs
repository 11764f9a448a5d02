//! The live snapshot from settings, plugins and secrets: the second stage of checking.
//!
//! A source that has an error is in the snapshot as unavailable, with the reason, and stops no other; whoever
//! only checks takes the problems. Values of secrets pass through here into keys and are told to nobody.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::Loaded;
use super::policy::{self, Provider};
use super::problem::{KeyPath, Problem, Problems, Severity, file_hint, io_reason, nearest};
use super::secret::{SecretRef, Surroundings};
use super::validate::{Settings, SourceSettings};
use crate::crypto::{Key, KeyError, KeyForm, Keyring, PublicKey};
use crate::keys::{HostPattern, Keys, Remote};
use crate::plugin::manifest::{SecretKind, SecretSpec};
use crate::plugin::registry::Registry;
use crate::plugin::{Manifest, Plugin, Sandbox, Setup};
use crate::telemetry::Telemetry;
use crate::tenants::{Ready, Source, Tenants, Unavailable};

/// The plugins at hand.
pub trait Plugins {
    /// The plugin of that name.
    fn plugin(&self, name: &str) -> Option<Arc<dyn Plugin>>;

    /// The names of all, in order.
    fn names(&self) -> Vec<&str>;

    /// Whether files were found that are none.
    fn any_refused(&self) -> bool {
        false
    }
}

impl Plugins for Registry {
    fn plugin(&self, name: &str) -> Option<Arc<dyn Plugin>> {
        self.get(name)
            .map(|plugin| Arc::clone(plugin) as Arc<dyn Plugin>)
    }

    fn names(&self) -> Vec<&str> {
        self.names().collect()
    }

    fn any_refused(&self) -> bool {
        !self.refused.is_empty()
    }
}

impl Loaded {
    /// Loads the plugins, and tells what keeps any from being one. Without the directory there are none.
    pub fn plugins(&self, sandbox: &Sandbox) -> (Registry, Problems) {
        self.plugins_after(sandbox, &Registry::default())
    }

    /// The same, without compiling what another registry has.
    pub fn plugins_after(&self, sandbox: &Sandbox, before: &Registry) -> (Registry, Problems) {
        let directory = &self.settings.plugin_directory;
        let registry = Registry::reopen(sandbox, directory, &self.settings.pins, before);
        let mut problems = self.problems.none();
        problems.add_all(plugin_problems(directory, registry.as_ref()));
        self.document.locate(&mut problems);
        (registry.unwrap_or_default(), problems)
    }

    /// The live snapshot, and every problem of its sources. A source with an error is in it as unavailable.
    pub fn tenants(
        &self,
        plugins: &impl Plugins,
        surroundings: &impl Surroundings,
        telemetry: &Telemetry,
        keys: Option<&Arc<Keys>>,
    ) -> (Tenants, Problems) {
        let mut problems = self.problems.none();
        let mut build = |settings: &SourceSettings| {
            let (state, policy, found) =
                prepare(settings, &self.settings, plugins, surroundings, keys);
            problems.add_all(found);
            let metrics = telemetry.source(&settings.tenant, &settings.name);
            let (tenant, name) = (settings.tenant.clone(), settings.name.clone());
            Source {
                tenant,
                name,
                state,
                policy,
                metrics,
            }
        };
        let tenants = self.settings.sources.iter().map(&mut build).collect();
        self.document.locate(&mut problems);
        (tenants, problems)
    }
}

fn plugin_problems(directory: &Path, registry: Result<&Registry, &std::io::Error>) -> Vec<Problem> {
    let path = KeyPath::new(&["plugins", "directory"]);
    let registry = match registry {
        Ok(registry) => registry,
        Err(error) => {
            let what = format!(
                "cannot read the directory {}: {}",
                directory.display(),
                io_reason(error)
            );
            return vec![Problem::error(path, what).hint(file_hint(error))];
        }
    };
    // Whether the file was wanted shows in the sources that name it.
    let refused = registry
        .refused
        .iter()
        .map(|file| Problem::warning(path.clone(), file.to_string()));
    let manifests = registry
        .names()
        .filter_map(|name| registry.get(name))
        .map(|plugin| plugin.manifest());
    let newer = manifests
        .filter(|manifest| !manifest.unknown.is_empty())
        .map(|manifest| {
            let keys: Vec<_> = manifest.unknown.keys().map(String::as_str).collect();
            let (name, keys) = (&manifest.name, keys.join(", "));
            Problem::warning(
                path.clone(),
                format!(
                    "the manifest of `{name}` has keys that this gateway does not know: {keys}"
                ),
            )
        });
    refused.chain(newer).collect()
}

type Prepared = (
    Result<Ready, Unavailable>,
    crate::tenants::Policy,
    Vec<Problem>,
);

fn prepare(
    source: &SourceSettings,
    settings: &Settings,
    plugins: &impl Plugins,
    surroundings: &impl Surroundings,
    fetched: Option<&Arc<Keys>>,
) -> Prepared {
    let path = source.path();
    let Some(plugin) = plugins.plugin(&source.plugin) else {
        let what = format!("there is no plugin `{}`", source.plugin);
        let mut hint = nearest(&source.plugin, "plugins", plugins.names());
        if plugins.any_refused() {
            hint += "\nfiles were refused that may be it: see the warnings for `plugins.directory`";
        }
        let mut problems = vec![Problem::error(path.then("plugin"), what).hint(hint)];
        problems.extend(unreadable(source, surroundings, &path));
        let policy = policy::policy(source, &Provider::default(), &settings.timing);
        return (Err(unavailable(&problems)), policy, problems);
    };
    let manifest = plugin.manifest();
    let provider = Provider::of(manifest);
    let policy = policy::policy(source, &provider, &settings.timing);
    let mut problems = check_manifest(source, manifest, &path);
    let keys = keyring(source, manifest, surroundings, &path, &mut problems);
    problems.extend(policy::check(&policy, &provider, &settings.timing, &path));
    let errors: Vec<_> = problems
        .iter()
        .filter(|p| p.severity == Severity::Error)
        .collect();
    let state = if errors.is_empty() {
        let mut options = with_defaults(manifest, &source.options);
        options.extend(key_names(source, manifest, &options, surroundings));
        Ok(ready(source, Arc::clone(&plugin), keys, options, fetched))
    } else {
        Err(unavailable(errors))
    };
    (state, policy, problems)
}

fn unavailable<'a>(errors: impl IntoIterator<Item = &'a Problem>) -> Unavailable {
    let reasons: Vec<_> = errors.into_iter().map(ToString::to_string).collect();
    Unavailable {
        reason: reasons.join("; "),
    }
}

fn ready(
    source: &SourceSettings,
    plugin: Arc<dyn Plugin>,
    keys: Keyring,
    options: BTreeMap<String, String>,
    fetched: Option<&Arc<Keys>>,
) -> Ready {
    let signature_header = plugin.manifest().signature_header(&options);
    let approved = source.key_hosts.clone();
    let certificates = plugin.manifest().certificates.clone();
    let remote = fetched.filter(|_| !approved.is_empty());
    let setup = Setup {
        label: format!("/{}/{}", source.tenant, source.name),
        keys,
        options,
        public_url: source.public_url.clone(),
        remote: remote.map(|keys| Remote::new(Arc::clone(keys), approved, certificates)),
        sign_challenges: source.sign_challenges,
    };
    Ready {
        plugin,
        setup: Arc::new(setup),
        signature_header,
    }
}

/// The options as the plugin finds them: the source's, else the manifest's defaults, which are a preset's
/// options.
fn with_defaults(
    manifest: &Manifest,
    given: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let defaults = manifest.options.iter().filter_map(|option| {
        let default = option.default.clone()?;
        Some((option.name.clone(), default))
    });
    let given = given
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()));
    defaults.chain(given).collect()
}

/// The options that hold the names of a secret's values, where nothing else gives them.
fn key_names(
    source: &SourceSettings,
    manifest: &Manifest,
    given: &BTreeMap<String, String>,
    surroundings: &impl Surroundings,
) -> BTreeMap<String, String> {
    let names = |secret: &str| {
        let form = manifest
            .secret(secret)
            .map(|spec| spec.form)
            .unwrap_or_default();
        let form = source.key_forms.get(secret).copied().unwrap_or(form);
        let values = source.secrets.get(secret).into_iter().flatten();
        let values = values.filter_map(|at| at.read(surroundings).ok());
        let names = values.filter_map(|value| form.name_of(value.expose()).map(str::to_owned));
        names.collect::<Vec<_>>().join(" ")
    };
    let options = manifest.options.iter();
    let options = options.filter(|option| !given.contains_key(&option.name));
    let named =
        options.filter_map(|option| Some((option.name.clone(), names(option.names_of.as_ref()?))));
    named.filter(|(_, names)| !names.is_empty()).collect()
}

/// What the plugin asks of the source, and what it does not know.
fn check_manifest(source: &SourceSettings, manifest: &Manifest, path: &KeyPath) -> Vec<Problem> {
    let plugin = &manifest.name;
    let mut problems = Vec::new();
    if manifest.needs_public_url && source.public_url.is_none() {
        let what = format!("it is missing: the provider of `{plugin}` signs the URL that it calls");
        problems.push(
            Problem::error(path.then("public_url"), what)
                .hint("write it exactly as the provider is told it"),
        );
    }
    problems.extend(key_hosts(source, manifest, path));
    if manifest.signs_challenges && !source.sign_challenges {
        let what = format!(
            "the provider of `{plugin}` tries who listens, and will be refused: the answer is a MAC"
        );
        let hint = "`sign_challenges = true` has such answers signed with the source's secret";
        problems.push(Problem::warning(path.then("sign_challenges"), what).hint(hint));
    }
    problems.extend(missing_options(source, manifest, path));
    problems.extend(unknown_options(source, manifest, path));
    problems.extend(missing_secrets(source, manifest, path));
    let known = || manifest.secrets.iter().map(|secret| secret.name.as_str());
    for name in source
        .secrets
        .keys()
        .filter(|name| manifest.secret(name).is_none())
    {
        let what = format!("the plugin `{plugin}` has no secret of that name");
        let problem = Problem::error(path.then("secrets").then(name), what);
        problems.push(problem.hint(nearest(name, "its secrets", known())));
    }
    problems
}

/// Hosts that the plugin has not named, and hosts that it has and nobody approved.
fn key_hosts(source: &SourceSettings, manifest: &Manifest, path: &KeyPath) -> Vec<Problem> {
    let (plugin, path) = (&manifest.name, path.then("key_hosts"));
    let known: Vec<_> = manifest
        .key_hosts
        .iter()
        .filter_map(|host| HostPattern::new(host))
        .collect();
    let all = manifest.key_hosts.join("\", \"");
    if source.key_hosts.is_empty() && !known.is_empty() && source.secrets.is_empty() {
        let what =
            format!("it is missing: the plugin `{plugin}` verifies with keys that are fetched");
        let hint = format!("write it as key_hosts = [\"{all}\"], or only those that you use");
        return vec![Problem::error(path, what).hint(&hint)];
    }
    let is_named = |host: &&HostPattern| !known.iter().any(|known| known.covers(host));
    let foreign = source.key_hosts.iter().filter(is_named);
    let problem = |host: &HostPattern| {
        let what = format!("the plugin `{plugin}` fetches nothing from {host}");
        let hint = match all.as_str() {
            "" => "it fetches nothing from anywhere".into(),
            all => format!("it fetches from \"{all}\""),
        };
        Problem::error(path.clone(), what).hint(&hint)
    };
    foreign.map(problem).collect()
}

fn missing_options(
    source: &SourceSettings,
    manifest: &Manifest,
    path: &KeyPath,
) -> impl Iterator<Item = Problem> {
    let missing_ones = manifest.options.iter().filter(|option| {
        option.required && option.default.is_none() && !source.options.contains_key(&option.name)
    });
    missing_ones.map(|option| {
        let path = path.then("options").then(&option.name);
        let example = format!("options.{} = \"…\"", option.name);
        missing(path, &manifest.name, &option.description, &example)
    })
}

fn unknown_options(
    source: &SourceSettings,
    manifest: &Manifest,
    path: &KeyPath,
) -> impl Iterator<Item = Problem> {
    let known = || manifest.options.iter().map(|option| option.name.as_str());
    // A plugin that lists none may read some all the same.
    let lists_some = !manifest.options.is_empty();
    let unknown = source
        .options
        .keys()
        .filter(move |name| lists_some && !known().any(|k| k == *name));
    unknown.map(move |name| {
        let what = format!("the plugin `{}` has no option of that name", manifest.name);
        Problem::warning(path.then("options").then(name), what).hint(nearest(
            name,
            "its options",
            known(),
        ))
    })
}

fn missing_secrets(
    source: &SourceSettings,
    manifest: &Manifest,
    path: &KeyPath,
) -> impl Iterator<Item = Problem> {
    let missing_ones = manifest
        .secrets
        .iter()
        .filter(|secret| secret.required && !source.secrets.contains_key(&secret.name));
    let missing_ones = missing_ones.map(|secret| {
        let path = path.then("secrets").then(&secret.name);
        let example = format!("secrets.{} = [\"env:NAME\"]", secret.name);
        missing(path, &manifest.name, &secret.description, &example)
    });
    missing_ones.chain(no_secret(source, manifest, path))
}

/// Of secrets that are all optional, one at least must be there: without any, and without keys to be fetched,
/// nothing could be authentic.
fn no_secret(source: &SourceSettings, manifest: &Manifest, path: &KeyPath) -> Option<Problem> {
    let specs = &manifest.secrets;
    let is_served = |spec: &SecretSpec| spec.required || source.secrets.contains_key(&spec.name);
    let fetches_keys = !manifest.key_hosts.is_empty();
    if fetches_keys || specs.is_empty() || specs.iter().any(is_served) {
        return None;
    }
    let names: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
    let names = names.join("`, `");
    let what = format!(
        "the plugin `{}` needs at least one of `{names}`",
        manifest.name
    );
    let hint = format!("write it as secrets.{} = [\"env:NAME\"]", specs[0].name);
    Some(Problem::error(path.then("secrets"), what).hint(hint))
}

/// Something that a plugin needs and the source lacks.
fn missing(path: KeyPath, plugin: &str, description: &str, example: &str) -> Problem {
    let what = format!("it is missing, but the plugin `{plugin}` needs it");
    let hint = format!("{description}\nwrite it as {example}");
    Problem::error(path, what).hint(hint.trim_start())
}

/// The values of secrets that cannot be had. What they would be keys of, only a plugin could tell.
fn unreadable(
    source: &SourceSettings,
    surroundings: &impl Surroundings,
    path: &KeyPath,
) -> impl Iterator<Item = Problem> {
    let all = source
        .secrets
        .iter()
        .flat_map(|(name, refs)| refs.iter().map(move |at| (name, at)));
    all.filter_map(move |(name, at)| {
        let what = at.read(surroundings).err()?;
        Some(Problem::error(path.then("secrets").then(name), what))
    })
}

/// The keys that can be had; what keeps others from it is added to the problems.
fn keyring(
    source: &SourceSettings,
    manifest: &Manifest,
    surroundings: &impl Surroundings,
    path: &KeyPath,
    problems: &mut Vec<Problem>,
) -> Keyring {
    let mut keys = manifest.keyring();
    for (name, refs) in &source.secrets {
        let Some(spec) = manifest.secret(name) else {
            continue;
        };
        let form = source.key_forms.get(name).copied().unwrap_or(spec.form);
        let add = |keys: &mut Keyring, at| match spec.kind {
            SecretKind::PublicKey => {
                public_key(at, form, spec, surroundings).map(|key| keys.add_public(name, key))
            }
            SecretKind::Mac | SecretKind::Token => {
                let key = key(at, form, source.allow_weak_key, surroundings);
                key.map(|key| keys.add(name, key))
            }
        };
        let unusable: Vec<_> = refs
            .iter()
            .filter_map(|at| add(&mut keys, at).err())
            .collect();
        let path = path.then("secrets").then(name);
        problems.extend(
            unusable
                .into_iter()
                .map(|what| Problem::error(path.clone(), what)),
        );
    }
    keys
}

fn key(at: &SecretRef, form: KeyForm, weak: bool, from: &impl Surroundings) -> Result<Key, String> {
    let value = at.read(from)?;
    Key::decode(form, value.expose(), weak).map_err(|error| no_key(at, error))
}

fn public_key(
    at: &SecretRef,
    form: KeyForm,
    spec: &SecretSpec,
    from: &impl Surroundings,
) -> Result<PublicKey, String> {
    let value = at.read(from)?;
    let key = PublicKey::decode(form, value.expose(), spec.algorithm);
    key.map_err(|error| no_key(at, error))
}

fn no_key(at: &SecretRef, error: KeyError) -> String {
    let hint = match error {
        KeyError::Empty | KeyError::Blank => "put the secret there, as the provider shows it",
        KeyError::Unexpanded => "whatever should have put the secret there has not",
        KeyError::NotHex
        | KeyError::NotBase64
        | KeyError::NotPem
        | KeyError::NotJwk
        | KeyError::Public(_) => "if it has another form, say so in `key_forms`",
        KeyError::TooShort { .. } => "let the provider make a longer one",
    };
    format!("{at} cannot be a key: {error}\nhint: {hint}")
}
