//! Counts the bytes that a client has sent and that hyper has not passed on yet, and reads the request line.
//!
//! Pure. hyper reports neither how much it holds of an unfinished head or of bytes behind a request, nor that
//! a target had a fragment. The count is an estimate: a head is taken for as long as it would be in the usual
//! spelling.

use memchr::memchr2;

/// Largest error of an estimate: unusual blanks.
const MAX_ESTIMATE_ERROR: u64 = 4 << 10;
/// Memory that hyper takes for the first bytes of a head.
const FIRST_BUFFER: u64 = 8 << 10;

/// Bytes on their way from one client through hyper.
#[derive(Debug)]
pub(crate) struct Inbound {
    buffered: u64,
    part: RequestPart,
    has_fragment: bool,
    has_ended: bool,
}

/// Part of a request that the next bytes belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestPart {
    /// A head of which nothing has come.
    Before,
    /// Empty lines before it (RFC 9112, 2.2).
    Blank,
    /// The request line.
    Line,
    /// The rest of the head.
    Fields,
    /// A body, or what comes behind the request while it is answered.
    Call,
}

/// Shape of the target of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// No fragment, as RFC 9112 (3.2) wants it.
    Plain,
    /// With a `#`, behind which hyper drops everything.
    WithFragment,
}

impl Inbound {
    /// Creates the count of a new connection.
    pub(crate) const fn new() -> Self {
        Self { buffered: 0, part: RequestPart::Before, has_fragment: false, has_ended: false }
    }

    /// Counts `bytes` that hyper has read.
    pub(crate) fn received(&mut self, bytes: &[u8]) {
        let length = bytes.len() as u64;
        if self.part == RequestPart::Call {
            // hyper reads on only when it holds nothing more.
            self.buffered = length;
            return;
        }
        if self.part == RequestPart::Before {
            self.begin_head();
        }
        self.buffered += length;
        self.scan_line(bytes);
    }

    /// Notes that the client will send nothing more.
    pub(crate) const fn end(&mut self) {
        self.has_ended = true;
    }

    /// Returns whether the client will send nothing more.
    pub(crate) const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Notes that hyper has passed on a head of `size` bytes.
    pub(crate) const fn take_head(&mut self, size: u64) -> Target {
        self.take(size);
        self.part = RequestPart::Call;
        if self.has_fragment { Target::WithFragment } else { Target::Plain }
    }

    /// Notes that hyper has passed on `bytes` bytes of a body.
    pub(crate) const fn take(&mut self, bytes: u64) {
        self.buffered = self.buffered.saturating_sub(bytes);
    }

    /// Notes that bytes that come now still belong to the request that was answered.
    pub(crate) const fn discard(&mut self) {
        self.part = RequestPart::Call;
    }

    /// Notes that bytes that come now begin another request.
    pub(crate) const fn expect_head(&mut self) {
        self.part = RequestPart::Before;
        self.has_fragment = false;
    }

    /// Returns the memory that hyper holds for bytes that belong to no call: its buffer grows in powers of two.
    pub(crate) const fn held(&self) -> u64 {
        match self.part {
            RequestPart::Blank | RequestPart::Line | RequestPart::Fields if self.buffered < FIRST_BUFFER => {
                FIRST_BUFFER
            }
            RequestPart::Before | RequestPart::Call if self.buffered < MAX_ESTIMATE_ERROR => 0,
            _ => self.buffered.next_power_of_two(),
        }
    }

    const fn begin_head(&mut self) {
        // Where anything is left, the line may have come behind the request before, and these bytes are fields.
        self.part = if self.buffered == 0 { RequestPart::Blank } else { RequestPart::Fields };
        if self.buffered < MAX_ESTIMATE_ERROR {
            self.buffered = 0;
        }
    }

    fn scan_line(&mut self, mut bytes: &[u8]) {
        if self.part == RequestPart::Blank {
            let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            bytes = &bytes[blank..];
            if !bytes.is_empty() {
                self.part = RequestPart::Line;
            }
        }
        if self.part == RequestPart::Line
            && let Some(found) = memchr2(b'#', b'\n', bytes)
        {
            self.has_fragment = bytes[found] == b'#';
            self.part = RequestPart::Fields;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &[u8] = b"POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}";

    #[test]
    fn a_head_counts_until_it_is_whole() {
        let mut inbound = Inbound::new();
        assert_eq!(inbound.held(), 0, "a silent client holds nothing");
        inbound.received(&CALL[..10]);
        assert_eq!(inbound.held(), FIRST_BUFFER);
        inbound.received(&[b'x'; 9000]);
        assert_eq!(inbound.held(), 16 << 10);
        inbound.take_head(9010);
        assert_eq!(inbound.held(), 0);
    }

    #[test]
    fn bytes_behind_a_request_count() {
        let mut inbound = Inbound::new();
        inbound.received(&[CALL, &[b'x'; 30_000]].concat());
        inbound.take_head(CALL.len() as u64 - 2);
        inbound.take(2);
        assert_eq!(inbound.held(), 32 << 10);
        inbound.expect_head();
        assert_eq!(inbound.held(), 32 << 10, "also when the call is over");
        inbound.received(b"y");
        inbound.take_head(30_001);
        assert_eq!(inbound.held(), 0);
    }

    #[test]
    fn calls_one_after_the_other_leave_nothing() {
        let mut inbound = Inbound::new();
        for _ in 0..100_000 {
            inbound.received(CALL);
            // Spelled with blanks that are unusual.
            inbound.take_head(CALL.len() as u64 - 12);
            inbound.received(&[b'x'; 100_000]);
            inbound.take(100_000);
            inbound.expect_head();
            assert_eq!(inbound.held(), 0);
        }
    }

    #[test]
    fn fields_behind_a_pipelined_line_are_no_line() {
        let mut inbound = Inbound::new();
        inbound.received(&[CALL, b"GET /v1/models HTTP/1.1\r\n"].concat());
        inbound.take_head(CALL.len() as u64 - 2);
        inbound.take(2);
        inbound.expect_head();
        inbound.received(b"user-agent: C#\r\n\r\n");
        assert_eq!(inbound.take_head(41), Target::Plain);
        inbound.expect_head();
        inbound.received(b"GET /v1/models# HTTP/1.1\r\n\r\n");
        assert_eq!(inbound.take_head(28), Target::WithFragment, "the control");
    }

    #[test]
    fn a_fragment_is_found_in_the_line_only() {
        let cases: [(&[&[u8]], Target); 7] = [
            (&[b"POST /v1/messages#x HTTP/1.1\r\n\r\n"], Target::WithFragment),
            (&[b"POST /v1/mess", b"ages#", b"x HTTP/1.1\r\n\r\n"], Target::WithFragment),
            (&[b"\r\n", b"\r\nPOST /v1/messages#x HTTP/1.1\r\n\r\n"], Target::WithFragment),
            (&[b"\r\n\r\nPOST /a# HTTP/1.1\r\n\r\n"], Target::WithFragment),
            (&[b"POST /v1/messages HTTP/1.1\r\nuser-agent: C#\r\n\r\n#"], Target::Plain),
            (&[b"POST /v1/messages HTTP/1.1\r\nuser-agent: ", b"C#\r\n\r\n"], Target::Plain),
            (&[b"POST /v1/messages HTTP/1.1", b"\r\n#: a\r\n\r\n"], Target::Plain),
        ];
        for (pieces, target) in cases {
            let mut inbound = Inbound::new();
            pieces.iter().for_each(|piece| inbound.received(piece));
            assert_eq!(inbound.take_head(100), target, "{pieces:?}");
            inbound.expect_head();
            inbound.received(CALL);
            assert_eq!(inbound.take_head(100), Target::Plain, "the next request");
        }
    }
}
