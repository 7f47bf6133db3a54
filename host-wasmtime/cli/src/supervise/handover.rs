//! Handing the user's stdin to a face of this binary.
//!
//! Without `unsafe` a process can name only descriptors 0, 1 and 2, and all three belong to the
//! command. So a face finds its socket in the place of stdin, takes the socket from there, and
//! gets the real stdin down the socket. Its arrival is also the word to begin.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// A descriptor travels with at least one byte.
const CARRIER: [u8; 1] = [0];

/// Gives our stdin to the face at the other end.
pub(super) fn give_stdin(socket: &UnixStream) -> io::Result<()> {
    let stdin = io::stdin();
    let descriptors = [stdin.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("no room for the descriptor of stdin"));
    }
    sendmsg(socket, &[IoSlice::new(&CARRIER)], &mut control, SendFlags::empty())?;
    Ok(())
}

/// Takes the socket out of stdin's place and waits there for the real stdin.
///
/// # Errors
/// Stdin is no socket, or the other end is gone.
pub(super) fn take_stdin() -> io::Result<UnixStream> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdin(receive(&socket)?)?;
    Ok(socket)
}

fn receive(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = CARRIER;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let carrier = &mut [IoSliceMut::new(&mut byte)];
    rustix::io::retry_on_intr(|| recvmsg(socket, carrier, &mut control, ON_RECEIPT))?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message
            && let Some(stdin) = descriptors.next()
        {
            return Ok(stdin);
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// The received descriptor itself is not for the command; its copy at stdin's place is.
#[cfg(target_os = "linux")]
const ON_RECEIPT: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const ON_RECEIPT: RecvFlags = RecvFlags::empty();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_is_the_stdin_of_the_giver() {
        let (here, there) = UnixStream::pair().unwrap();
        give_stdin(&here).unwrap();
        let arrived = rustix::fs::fstat(receive(&there).unwrap()).unwrap();
        let ours = rustix::fs::fstat(io::stdin()).unwrap();
        assert_eq!((arrived.st_dev, arrived.st_ino), (ours.st_dev, ours.st_ino));
    }

    #[test]
    fn an_end_of_file_is_no_stdin() {
        let (here, there) = UnixStream::pair().unwrap();
        drop(here);
        assert_eq!(receive(&there).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
