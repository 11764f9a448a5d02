//! The lower rungs of the speed ladder, and the sandbox against the same decision in native code.
//!
//! `ladder serve RUNG`: 1 raw hyper, 2 with a native HMAC, 3 with the plugin in a fresh sandbox; the upper rungs
//! are the gateway itself. `ladder sandbox`: one thread, both by turns, medians. `ladder load` delivers at a fixed
//! rate (see [`open_loop`]); `ladder redis MS` and `ladder aws MS` are backends whose calls are held up so long
//! (see [`stand_in`]); `ladder fsync` measures the device alone. Build with `--release`.

mod decision;
mod open_loop;
mod stand_in;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hookgate::plugin::{Setup, WasmPlugin};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mimalloc::MiMalloc;
use ring::hmac;

use decision::{accepts, body, delivery, github, native_key, setup, signature, signed, verify};

/// The gateway's.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[allow(clippy::print_stdout, reason = "a program for people")]
fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", "1"] => serve(Rung::Raw),
        ["serve", "2"] => serve(Rung::Native(native_key())),
        ["serve", "3"] => serve(Rung::Sandbox(github(), setup())),
        ["sandbox"] => compare(),
        ["sign", length] => {
            let body = body(length.parse().expect("a length"));
            println!("{}\n{}", signature(&body), String::from_utf8_lossy(&body));
        }
        ["load", address, rate, seconds, connections, signed] => {
            load(
                address,
                number(rate),
                number(seconds),
                number(connections),
                signed,
            );
        }
        ["redis", delay] => stand_in::redis(Duration::from_millis(number(delay).into())),
        ["aws", delay] => stand_in::aws(Duration::from_millis(number(delay).into())),
        ["fsync", directory] => fsync(directory).expect("a directory that can be written to"),
        _ => println!(
            "ladder serve 1|2|3, ladder sandbox, ladder sign LENGTH, \
             ladder load ADDRESS RATE SECONDS CONNECTIONS SIGNED, ladder redis MS, ladder aws MS, \
             ladder fsync DIRECTORY"
        ),
    }
}

fn number(text: &str) -> u32 {
    text.parse().expect("a number")
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Delivers what `ladder sign` wrote into the file. Prints how many were counted, their percentiles
/// 50, 99 and 99.9 in ms, and how many failed.
#[allow(clippy::print_stdout, reason = "a program for people")]
fn load(address: &str, rate: u32, seconds: u32, connections: u32, file: &str) {
    let signed = std::fs::read_to_string(file).expect("a file of `ladder sign`");
    let (signature, body) = signed.split_once('\n').expect("a signature and a body");
    let load = open_loop::Load {
        address: address.parse().expect("an address"),
        rate,
        lasts: Duration::from_secs(seconds.into()),
        connections: connections as usize,
        signature: signature.to_owned(),
        body: Bytes::copy_from_slice(body.trim_end_matches('\n').as_bytes()),
    };
    let taken = open_loop::run(load).expect("connections");
    let [p50, p99, p999] = [500, 990, 999].map(|of_1000| ms(taken.permille(of_1000)));
    let (count, failed) = (taken.count(), taken.failed);
    println!("RESULT {count} {p50:.3} {p99:.3} {p999:.3} {failed}");
}

/// Appends 4 KiB and syncs, again and again. Prints the percentiles 50 and 99 in ms.
#[allow(clippy::print_stdout, reason = "a program for people")]
fn fsync(directory: &str) -> std::io::Result<()> {
    use std::io::Write;
    let path = std::path::Path::new(directory).join("fsync");
    let mut file = std::fs::File::create(&path)?;
    let mut times = Vec::new();
    for _ in 0..1000 {
        file.write_all(&[7; 4096])?;
        let started = Instant::now();
        file.sync_data()?;
        times.push(started.elapsed());
    }
    std::fs::remove_file(path)?;
    times.sort();
    println!("RESULT {:.3} {:.3}", ms(times[500]), ms(times[990]));
    Ok(())
}

enum Rung {
    Raw,
    Native(hmac::Key),
    Sandbox(Box<WasmPlugin>, Arc<Setup>),
}

#[tokio::main]
#[allow(clippy::print_stdout, reason = "a program for people")]
async fn serve(rung: Rung) {
    let rung = Arc::new(rung);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    println!(
        "ready: http://{}",
        listener.local_addr().expect("an address")
    );
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let _ = stream.set_nodelay(true);
        let rung = Arc::clone(&rung);
        let service = service_fn(move |request| answer(Arc::clone(&rung), request));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(
    rung: Arc<Rung>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let good = match &*rung {
        Rung::Raw => true,
        Rung::Native(key) => verify(key, &head.headers, &body),
        Rung::Sandbox(plugin, setup) => accepts(plugin, &delivery(head.headers, body), setup),
    };
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = if good {
        http::StatusCode::ACCEPTED
    } else {
        http::StatusCode::UNAUTHORIZED
    };
    Ok(answer)
}

/// Native and sandboxed verification by turns, one thread.
#[allow(clippy::print_stdout, reason = "a program for people")]
fn compare() {
    let (key, plugin, setup) = (native_key(), github(), setup());
    println!("| body | native us | sandbox us | added us | ratio |\n|---|---|---|---|---|");
    for length in [256, 2 << 10, 20 << 10, 1 << 20] {
        let delivery = signed(length);
        let rounds = if length > 100_000 { 20 } else { 2000 };
        let (mut native, mut sandboxed) = (Vec::new(), Vec::new());
        for _ in 0..15 {
            native.push(time(rounds, || {
                verify(&key, &delivery.headers, &delivery.body)
            }));
            sandboxed.push(time(rounds, || accepts(&plugin, &delivery, &setup)));
        }
        let (native, sandboxed) = (median(native), median(sandboxed));
        let (n, s) = (native.as_secs_f64() * 1e6, sandboxed.as_secs_f64() * 1e6);
        println!(
            "| {length} | {n:.2} | {s:.2} | {:.2} | {:.3} |",
            s - n,
            s / n
        );
    }
}

fn time(rounds: u32, mut call: impl FnMut() -> bool) -> Duration {
    let started = Instant::now();
    for _ in 0..rounds {
        assert!(call());
    }
    started.elapsed() / rounds
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
