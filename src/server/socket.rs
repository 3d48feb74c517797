//! A TCP stream that notices signs of life.
//!
//! A client lives when a byte comes from it, or when it takes bytes that had been stuck: one that lags answers no ping
//! for a long time and is alive all the while.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Signs of life of one client.
#[derive(Debug, Default)]
pub(super) struct Life {
    signs: AtomicU64,
    held_up: AtomicBool,
}

impl Life {
    pub(super) fn sign(&self) {
        self.signs.fetch_add(1, Ordering::Relaxed);
    }

    /// Grows with every sign.
    pub(super) fn signs(&self) -> u64 {
        self.signs.load(Ordering::Relaxed)
    }

    /// While we do not read, the client can't be heard.
    pub(super) fn set_held_up(&self, held_up: bool) {
        self.held_up.store(held_up, Ordering::Relaxed);
        self.sign();
    }

    pub(super) fn is_held_up(&self) -> bool {
        self.held_up.load(Ordering::Relaxed)
    }
}

/// See the module's description.
#[derive(Debug)]
pub(super) struct Socket<S> {
    stream: S,
    life: Arc<Life>,
    stuck: bool,
}

impl<S> Socket<S> {
    pub(super) fn new(stream: S, life: Arc<Life>) -> Self {
        Self { stream, life, stuck: false }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Socket<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.life.sign();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        match &written {
            Poll::Pending => self.stuck = true,
            Poll::Ready(Ok(_)) if self.stuck => {
                self.stuck = false;
                self.life.sign();
            }
            Poll::Ready(_) => {}
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn bytes_in_and_freed_writes_are_signs() {
        let (mut client, server) = tokio::io::duplex(4);
        let life = Arc::new(Life::default());
        let mut socket = Socket::new(server, life.clone());
        socket.write_all(b"1234").await.unwrap();
        assert_eq!(life.signs(), 0, "what the system buffers proves nothing");
        let mut buffer = [0; 4];
        let (wrote, read) = tokio::join!(socket.write_all(b"5678"), client.read_exact(&mut buffer));
        wrote.unwrap();
        read.unwrap();
        assert_eq!(life.signs(), 1);
        client.write_all(b"x").await.unwrap();
        socket.read_u8().await.unwrap();
        assert_eq!(life.signs(), 2);
    }
}
