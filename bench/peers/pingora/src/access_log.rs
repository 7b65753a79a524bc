//! access_log writes a line for each request, buffered as nginx-tuned buffers its log: 64 KB, at most a second old.

use std::{
    borrow::Cow,
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use pingora_http::HMap;
use pingora_proxy::Session;

const BUFFER: usize = 64 * 1024;
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// The log, shared by the proxy's threads.
pub(crate) struct AccessLog(Mutex<Buffer>);

struct Buffer {
    file: BufWriter<File>,
    flushed: Instant,
}

impl AccessLog {
    /// Creates the log's file.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = BufWriter::with_capacity(BUFFER, File::create(path)?);
        Ok(Self(Mutex::new(Buffer { file, flushed: Instant::now() })))
    }

    /// Writes the line of a finished request; its upstream was `asked` at that time.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write(&self, session: &Session, asked: Option<Instant>) -> io::Result<()> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let answer = session.response_written();
        let status = answer.map_or(0, |answer| answer.status.as_u16());
        let model = text(&session.req_header().headers, "x-model");
        let call = answer.map_or("-".into(), |answer| text(&answer.headers, "x-litellm-call-id"));
        let bytes = session.body_bytes_sent();
        let upstream_time = asked.map(|asked| asked.elapsed()).unwrap_or_default().as_secs_f64();
        let mut buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(
            buffer.file,
            "{}.{:03} runId=bench attempt=0 status={status} bytes={bytes} model={model} litellm_call_id={call} \
             upstream_time={upstream_time:.3}",
            now.as_secs(),
            now.subsec_millis()
        )?;
        if buffer.flushed.elapsed() < FLUSH_INTERVAL {
            return Ok(());
        }
        buffer.flushed = Instant::now();
        buffer.file.flush()
    }
}

/// Returns the value of the header `name`, `-` if it is missing.
fn text<'h>(headers: &'h HMap, name: &str) -> Cow<'h, str> {
    headers.get(name).map_or("-".into(), |value| String::from_utf8_lossy(value.as_bytes()))
}
