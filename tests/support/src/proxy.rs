//! A loopback proxy that fails as networks do: it freezes connections, cuts them, and loses an answer or a request.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::Notify,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

/// A proxy in front of one server. Dropped, it cuts everything.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _accepting: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// Connections before this one carry nothing any more.
    frozen_before: u64,
    live: Vec<CancellationToken>,
    trap: Option<(Trap, &'static [u8])>,
    /// What a trap cut.
    sprung: usize,
    /// How often a client spoke after its server had answered.
    turns: u64,
}

/// What is lost of the next exchange whose request holds certain bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trap {
    /// The request: the server never sees it.
    Request,
    /// The answer: the server has done what it was asked.
    Answer,
}

impl Proxy {
    /// Listens on a free port, and connects each client to that server.
    pub async fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, server, Arc::clone(&shared)));
        Ok(Self {
            address,
            shared,
            _accepting: accepting,
        })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every connection that is open now falls silent, and stays open; new ones work.
    pub fn freeze(&self) {
        let mut state = self.shared.state();
        state.frozen_before = state.next;
    }

    /// The frozen ones go on where they were.
    pub fn thaw(&self) {
        self.shared.state().frozen_before = 0;
        self.shared.changed.notify_waiters();
    }

    /// Every connection that is open now is closed.
    pub fn cut(&self) {
        for connection in self.shared.state().live.drain(..) {
            connection.cancel();
        }
    }

    /// Loses a part of the next exchange whose request holds these bytes, and closes its connection.
    pub fn trap(&self, trap: Trap, request: &'static [u8]) {
        self.shared.state().trap = Some((trap, request));
    }

    /// How many exchanges there were since the last look: what a client says before its server answers is one.
    pub fn take_round_trips(&self) -> u64 {
        std::mem::take(&mut self.shared.state().turns)
    }

    /// How many connections traps have cut.
    pub fn sprung(&self) -> usize {
        self.shared.state().sprung
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
    }
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the connection is frozen.
    async fn pass(&self, id: u64) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if id >= self.state().frozen_before {
                return;
            }
            changed.await;
        }
    }

    /// Whether this request springs the trap.
    fn springs(&self, bytes: &[u8]) -> Option<Trap> {
        let mut state = self.state();
        let (trap, request) = state.trap?;
        if !bytes.windows(request.len()).any(|part| part == request) {
            return None;
        }
        state.trap = None;
        state.sprung += 1;
        Some(trap)
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let Ok(server) = TcpStream::connect(server).await else {
                return;
            };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let cut = CancellationToken::new();
            let id = {
                let mut state = shared.state();
                state.live.retain(|connection| !connection.is_cancelled());
                state.live.push(cut.clone());
                state.next += 1;
                state.next - 1
            };
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            let deaf = CancellationToken::new();
            let asked = AtomicBool::new(false);
            let connection = Connection {
                id,
                shared: &shared,
                deaf: &deaf,
                asked: &asked,
            };
            tokio::select! {
                () = cut.cancelled() => {}
                () = connection.requests(from_client, to_server) => {}
                () = connection.answers(from_server, to_client) => {}
            }
            cut.cancel();
        });
    }
}

/// One of a client's connections.
struct Connection<'a> {
    id: u64,
    shared: &'a Shared,
    deaf: &'a CancellationToken,
    /// The client has asked, and the server not yet answered.
    asked: &'a AtomicBool,
}

impl Connection<'_> {
    async fn requests(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = from.read(&mut bytes).await {
            self.shared.pass(self.id).await;
            if !self.asked.swap(true, Ordering::Relaxed) {
                self.shared.state().turns += 1;
            }
            match self.shared.springs(&bytes[..read]) {
                Some(Trap::Request) => return,
                Some(Trap::Answer) => self.deaf.cancel(),
                None => {}
            }
            if to.write_all(&bytes[..read]).await.is_err() {
                return;
            }
        }
    }

    async fn answers(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = from.read(&mut bytes).await {
            self.shared.pass(self.id).await;
            self.asked.store(false, Ordering::Relaxed);
            // The server has answered, so it has done it.
            if self.deaf.is_cancelled() || to.write_all(&bytes[..read]).await.is_err() {
                return;
            }
        }
    }
}
