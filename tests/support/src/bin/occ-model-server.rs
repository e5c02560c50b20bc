//! `occ-model-server`: the test double of a model provider as a process of its own, for the quickstart and for hand tests.

use clap::{Parser, ValueEnum};
use occ_test_support::model_server::{Behaviour, ModelServer, Reply};
use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A test double of a paid model provider: answers the Responses API on loopback, with no model behind it.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Loopback address to listen on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// How to answer.
    #[arg(long, value_enum, default_value_t = Mode::Reply)]
    behaviour: Mode,

    /// The text of each reply; without it, the last user message is repeated.
    #[arg(long)]
    reply: Option<String>,

    /// Seconds for the Retry-After header of `rate-limited`; without it, none is sent.
    #[arg(long)]
    retry_after: Option<u64>,

    /// Milliseconds that `slow` waits before each event.
    #[arg(long, default_value_t = 500)]
    pause: u64,

    /// A file with the key to expect; every other key is answered with 401.
    #[arg(long)]
    expect_key_file: Option<PathBuf>,

    /// End when standard input ends, so that the server outlives no caller that is killed.
    #[arg(long)]
    end_with_stdin: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// A complete turn.
    Reply,
    /// A complete turn with pauses.
    Slow,
    /// 400, as for a model that does not exist.
    ModelNotFound,
    /// 429.
    RateLimited,
    /// 500.
    ServerError,
    /// 200 with an event stream that cannot be read.
    Garbage,
    /// 200 with HTML.
    WebPage,
    /// Never answers.
    Hang,
}

impl Arguments {
    fn behaviour(&self) -> Behaviour {
        let reply = self.reply.clone().map_or(Reply::Echo, Reply::Text);
        match self.behaviour {
            Mode::Reply => Behaviour::Reply(reply),
            Mode::Slow => Behaviour::Slow {
                reply,
                pause: Duration::from_millis(self.pause),
            },
            Mode::ModelNotFound => Behaviour::ModelNotFound,
            Mode::RateLimited => Behaviour::RateLimited {
                retry_after: self.retry_after.map(Duration::from_secs),
            },
            Mode::ServerError => Behaviour::ServerError,
            Mode::Garbage => Behaviour::Garbage,
            Mode::WebPage => Behaviour::WebPage,
            Mode::Hang => Behaviour::Hang,
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprint!("occ-model-server: {error}");
            if let Some(cause) = error.source() {
                eprint!(": {cause}");
            }
            eprintln!();
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let key = arguments
        .expect_key_file
        .as_ref()
        .map(std::fs::read_to_string)
        .transpose()?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let server = ModelServer::start_on(arguments.listen, arguments.behaviour()).await?;
    server.expect_key(key.as_deref().map(str::trim));
    println!(
        "occ-model-server: a test double, no real model; listening on {}",
        server.base_url()
    );
    let stdin = if arguments.end_with_stdin {
        end_of_stdin()
    } else {
        CancellationToken::new()
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = stdin.cancelled() => {}
    }
    server.shutdown().await;
    Ok(())
}

/// Cancelled when the other end of standard input is gone. A thread of its own, because tokio's standard input cannot be
/// left while it waits, and the process would outlive its signal.
fn end_of_stdin() -> CancellationToken {
    let ended = CancellationToken::new();
    let end = ended.clone();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        end.cancel();
    });
    ended
}
