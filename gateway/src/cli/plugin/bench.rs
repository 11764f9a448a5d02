//! `hookgate plugin bench`: what a delivery costs in the sandbox, beside the same hashing without one.

use std::hint::black_box;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Finding, PluginCommandError};
use crate::crypto::{Hash, Key, KeyForm, Mac, Piece, sign, verify_mac};
use crate::delivery::Delivery;
use crate::plugin::manifest::SecretKind;
use crate::plugin::sample::{self, Draft};
use crate::plugin::{Manifest, Plugin, Setup, WasmPlugin};
use crate::vectors::{self, Expect, Presets, Vector};

/// Calls of each kind in a round, and rounds by turns.
const CALLS: usize = 200;
const ROUNDS: usize = 15;
/// Calls before anything is measured.
const WARM_UP: usize = 500;

/// Reads as raw, hexadecimal and base64 alike.
const SECRET: &[u8] = b"00112233445566778899aabbccddeeff";

/// The plugin's file, as it was loaded.
pub(super) struct Loaded<'a> {
    pub plugin: &'a WasmPlugin,
    pub bytes: usize,
    pub compiled_in: Duration,
}

/// Measures one delivery: the sample, or the first valid vector.
pub(super) fn run(
    loaded: &Loaded<'_>,
    vectors: &[Vector],
    presets: &Presets,
    out: &mut dyn Write,
) -> Result<Finding, PluginCommandError> {
    let plugin = loaded.plugin;
    let (what, delivery, setup) = subject(plugin, vectors, presets)?;
    let handled = plugin.handle(&delivery, &setup).map_err(|fault| {
        PluginCommandError::Bench(format!("the plugin failed on {what}: {fault}"))
    })?;
    let key = Key::decode(KeyForm::Raw, SECRET, true).expect("the secret is a key");
    let pieces = [Piece::Bytes(&delivery.body)];
    let mac = Mac::Hmac(Hash::Sha256);
    let signature = sign(mac, &key, &pieces);
    let keys = [key];
    let native = || {
        black_box(verify_mac(
            mac,
            black_box(&keys),
            black_box(&pieces),
            &signature,
        ));
    };
    let sandboxed = || {
        let _ = black_box(plugin.handle(black_box(&delivery), &setup));
    };
    (0..WARM_UP).for_each(|_| sandboxed());
    let (mut in_sandbox, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        in_sandbox.extend((0..CALLS).map(|_| timed(sandboxed)));
        alone.extend((0..CALLS).map(|_| timed(native)));
    }
    let report = Report {
        in_sandbox: Times::of(in_sandbox),
        alone: Times::of(alone),
    };
    let kib = |bytes: usize| f64::from(u32::try_from(bytes).unwrap_or(u32::MAX)) / 1024.0;
    writeln!(
        out,
        "component  {:.1} KiB, compiled in {:.0?}",
        kib(loaded.bytes),
        loaded.compiled_in
    )?;
    writeln!(
        out,
        "delivery   {what}, a body of {} bytes; {} units of fuel",
        delivery.body.len(),
        handled.fuel
    )?;
    report.write(out)?;
    Ok(Finding::Good)
}

fn timed(call: impl Fn()) -> Duration {
    let started = Instant::now();
    call();
    started.elapsed()
}

type Subject = (&'static str, Arc<Delivery>, Arc<Setup>);

fn subject(
    plugin: &WasmPlugin,
    vectors: &[Vector],
    presets: &Presets,
) -> Result<Subject, PluginCommandError> {
    let own = |vector: &&Vector| {
        vector.expect == Expect::Valid && plugin.manifest().schemes.contains(&vector.scheme)
    };
    if let Some(vector) = vectors.iter().find(own) {
        let (delivery, setup) =
            vectors::source(plugin, vector, presets).map_err(PluginCommandError::Bench)?;
        return Ok(("a published delivery", Arc::new(delivery), Arc::new(setup)));
    }
    let setup = Arc::new(sample_setup(plugin.manifest()));
    let draft = Draft {
        path: "/in/bench/bench".into(),
        id: "evt_of_the_bench".into(),
        now_ms: 1_760_000_000_000,
        headers: Vec::new(),
        body: None,
    };
    let request = sample::sign(plugin, &setup, &draft).map_err(|error| {
        PluginCommandError::Bench(format!(
            "{error}\nhint: `--vectors FILE` has a delivery of the provider measured instead"
        ))
    })?;
    Ok(("its sample, signed", request.delivery(&draft), setup))
}

/// A source with the plugin's defaults, and one value for all that is a secret.
fn sample_setup(manifest: &Manifest) -> Setup {
    let mut keys = manifest.keyring();
    let secrets = manifest
        .secrets
        .iter()
        .filter(|spec| spec.kind == SecretKind::Mac);
    for spec in secrets {
        if let Ok(key) = Key::decode(spec.form, SECRET, true) {
            keys.add(&spec.name, key);
        }
    }
    let defaults = manifest.options.iter();
    Setup {
        label: "/bench/bench".into(),
        keys,
        options: defaults
            .filter_map(|o| Some((o.name.clone(), o.default.clone()?)))
            .collect(),
        public_url: Some("https://hooks.example/in/bench/bench".into()),
        sign_challenges: true,
        ..Setup::default()
    }
}

/// Times of many calls.
struct Times {
    median: Duration,
    p99: Duration,
}

impl Times {
    fn of(mut all: Vec<Duration>) -> Self {
        all.sort_unstable();
        Self {
            median: all[all.len() / 2],
            p99: all[all.len() * 99 / 100],
        }
    }
}

struct Report {
    in_sandbox: Times,
    alone: Times,
}

impl Report {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        let Self { in_sandbox, alone } = self;
        writeln!(
            out,
            "sandbox    {:8.2} us median, {:8.2} us p99",
            us(in_sandbox.median),
            us(in_sandbox.p99)
        )?;
        writeln!(
            out,
            "native     {:8.2} us median, {:8.2} us p99: HMAC-SHA256 of the same body, by turns",
            us(alone.median),
            us(alone.p99)
        )?;
        let more = us(in_sandbox.median) - us(alone.median);
        writeln!(out, "the sandbox adds {more:.2} us to a delivery")
    }
}
