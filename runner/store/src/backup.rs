//! Writes a store to a file, and restores it. The lines do not depend on the backend, so a backup from one backend can
//! be restored on the other.
//!
//! The format is NDJSON: a head that names the schema, then for each table its columns and its rows as arrays. The last
//! line counts the rows and carries the SHA-256, so that a truncated backup is refused. A backup is one snapshot and
//! stops no other program. A restore is one transaction: an empty schema of the backup's own version, its rows, then
//! the later migrations. Tests use it to check every released schema.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use futures_util::TryStreamExt;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use sqlx::{AssertSqlSafe, Column, Row, TypeInfo, ValueRef, any::AnyRow};

use super::{
    Store, Tx,
    error::{Error, failed},
    row::stored_json,
    schema::{self, SCHEMA, TABLES},
};

const FORMAT: &str = "sluicegate-store";
/// Number that a restore adds to the epochs of unfinished runs. A worker that got such a run after the backup then has
/// a smaller epoch, and is refused.
const RESTORE_EPOCHS: i64 = 1 << 32;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BackupHead {
    format: String,
    schema: usize,
    checksum: String,
    written_ms: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum BackupLine {
    Table { table: String, columns: Vec<String> },
    Row(Vec<Value>),
    End { rows: u64, sha256: String },
}

/// Number of rows that a backup or a restore processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows(pub u64);

/// Condition under which a restore replaces the store's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Onto {
    /// The store must be empty.
    Empty,
    /// The store may have content, which is replaced.
    Anything,
}

/// Writer of a backup, which counts its rows and hashes its lines.
struct BackupWriter<'f> {
    file: BufWriter<&'f File>,
    hash: Sha256,
    rows: u64,
}

impl BackupWriter<'_> {
    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.hash.update(&text);
        self.file.write_all(&text)
    }

    fn end(mut self) -> io::Result<Rows> {
        let end = BackupLine::End { rows: self.rows, sha256: hex(&self.hash) };
        serde_json::to_writer(&mut self.file, &end)?;
        self.file.write_all(b"\n")?;
        self.file.flush()?;
        Ok(Rows(self.rows))
    }
}

fn hex(hash: &Sha256) -> String {
    hash.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Store {
    /// Writes the whole store to `path`, readable by its owner only. An existing file is replaced once the new one is
    /// complete.
    ///
    /// # Errors
    /// [`Error::BackupFile`] if `path` cannot be written, and others if the store or the file system fails. Then `path`
    /// is unchanged.
    pub async fn backup(&self, path: &Path) -> Result<Rows, Error> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = Path::new(&partial);
        let unusable = |action| move |source| Error::BackupFile { action, path: path.to_owned(), source };
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(partial);
        let file = file.map_err(unusable("write"))?;
        let written = self.write_rows(&file, path).await;
        let finished = written.and_then(|rows| {
            file.sync_all().map_err(|source| Error::File {
                action: "write",
                path: path.to_owned(),
                source,
            })?;
            fs::rename(partial, path).map_err(unusable("replace"))?;
            Ok(rows)
        });
        if finished.is_err() {
            drop(fs::remove_file(partial));
        }
        finished
    }

    /// Writes all rows to `file`; errors name `path`.
    async fn write_rows(&self, file: &File, path: &Path) -> Result<Rows, Error> {
        let write_error = |source| Error::File { action: "write", path: path.to_owned(), source };
        let mut tx = self.begin_with(self.backend.begin_snapshot()).await?;
        let mut writer = BackupWriter { file: BufWriter::new(file), hash: Sha256::new(), rows: 0 };
        let checksum = schema::checksum(SCHEMA).unwrap_or_default();
        let head = BackupHead { format: FORMAT.to_owned(), schema: SCHEMA, checksum, written_ms: tx.now };
        writer.line(&head).map_err(write_error)?;
        for table in TABLES {
            let mut has_header = false;
            let all = AssertSqlSafe(format!("SELECT * FROM {table} ORDER BY 1, 2, 3"));
            let mut rows = sqlx::query(all).fetch(tx.connection());
            while let Some(row) = rows.try_next().await.map_err(failed("read the store"))? {
                if !has_header {
                    let line = BackupLine::Table { table: table.to_owned(), columns: names(&row) };
                    writer.line(&line).map_err(write_error)?;
                    has_header = true;
                }
                writer.line(&BackupLine::Row(values(&row)?)).map_err(write_error)?;
                writer.rows += 1;
            }
        }
        tx.commit("read the store").await?;
        writer.end().map_err(write_error)
    }

    /// Replaces the store's content with the backup at `path`, completely or not at all. Replaces the rows of all
    /// installations, but keeps the hosts that the store serves.
    ///
    /// # Errors
    /// [`Error::NotEmpty`] if the store has content and `onto` does not allow that. [`Error::OthersAtWork`] while
    /// another installation has a lease. [`Error::ServesAnother`] if the store serves another host. [`Error::Backup`]
    /// if the file is not a complete backup. [`Error::Newer`] if a later program wrote it. Then nothing has changed.
    pub async fn restore(&self, path: &Path, onto: Onto) -> Result<Rows, Error> {
        let head = BackupReader::open(path)?.verify()?;
        let mut reader = BackupReader::open(path)?;
        reader.head()?;
        let mut tx = self.begin().await?;
        schema::lock(&mut tx).await?;
        self.claim_whole(&mut tx).await?;
        if onto == Onto::Empty && tx.has_content().await? {
            return Err(Error::NotEmpty { store: self.address.to_string() });
        }
        let hosts = tx.hosts().await?;
        schema::drop_all(&mut tx).await?;
        schema::migrate(&mut tx, 0, head.schema).await?;
        let rows = tx.insert_rows(&mut reader).await?;
        schema::migrate(&mut tx, head.schema, SCHEMA).await?;
        for host in &hosts {
            tx.insert("hosts", &names(host), values(host)?).await?;
        }
        let raise_epochs =
            sqlx::query("UPDATE runs SET epoch = epoch + $1 WHERE ended IS NULL").bind(RESTORE_EPOCHS);
        raise_epochs.execute(tx.connection()).await.map_err(failed("fence earlier holders of runs"))?;
        tx.finish("restore a backup", rows).await
    }
}

/// Returns the names of a row's columns.
fn names(row: &AnyRow) -> Vec<String> {
    row.columns().iter().map(|column| column.name().to_owned()).collect()
}

/// Returns a row as JSON: texts, whole numbers and nulls.
fn values(row: &AnyRow) -> Result<Vec<Value>, Error> {
    let value = |index: usize| {
        let raw = row.try_get_raw(index)?;
        if raw.is_null() {
            return Ok(Value::Null);
        }
        match raw.type_info().name() {
            "TEXT" => row.try_get::<String, _>(index).map(Value::from),
            _ => row.try_get::<i64, _>(index).map(Value::from),
        }
    };
    (0..row.len()).map(value).collect::<Result<_, sqlx::Error>>().map_err(failed("read the store"))
}

/// Reader of a backup's lines, which hashes them.
struct BackupReader<'p> {
    path: &'p Path,
    lines: BufReader<File>,
    hash: Sha256,
    line: usize,
}

impl<'p> BackupReader<'p> {
    fn open(path: &'p Path) -> Result<Self, Error> {
        let unusable = |source| Error::BackupFile { action: "read", path: path.to_owned(), source };
        let lines = BufReader::new(File::open(path).map_err(unusable)?);
        Ok(Self { path, lines, hash: Sha256::new(), line: 0 })
    }

    /// Reads the backup to its end, and checks that it is complete and unchanged.
    fn verify(mut self) -> Result<BackupHead, Error> {
        let head = self.head()?;
        let mut row_count = 0;
        loop {
            match self.line()? {
                (BackupLine::Table { .. }, _) => {}
                (BackupLine::Row(_), _) => row_count += 1,
                (BackupLine::End { rows, sha256 }, hash_before)
                    if rows == row_count && sha256 == hex(&hash_before) =>
                {
                    return Ok(head);
                }
                (BackupLine::End { .. }, _) => return Err(self.invalid("the backup was changed")),
            }
        }
    }

    /// Returns the next line after the head, and the hash of everything before it.
    fn line(&mut self) -> Result<(BackupLine, Sha256), Error> {
        let (text, hash_before) = self.next()?;
        let line = stored_json(&text).ok_or_else(|| self.invalid("this line does not belong to a backup"))?;
        Ok((line, hash_before))
    }

    fn invalid(&self, problem: &'static str) -> Error {
        Error::Backup { path: self.path.to_owned(), line: self.line, problem }
    }

    /// Returns the text of the next line, and the hash of everything before it.
    fn next(&mut self) -> Result<(String, Sha256), Error> {
        let mut text = String::new();
        self.line += 1;
        let read = self.lines.read_line(&mut text);
        let path = self.path.to_owned();
        if read.map_err(|source| Error::File { action: "read", path, source })? == 0 {
            return Err(self.invalid("the backup is truncated here"));
        }
        let hash_before = self.hash.clone();
        self.hash.update(text.as_bytes());
        Ok((text, hash_before))
    }

    /// Reads the first line, and checks that this program can restore the backup.
    fn head(&mut self) -> Result<BackupHead, Error> {
        let (text, _) = self.next()?;
        let head: BackupHead = stored_json(&text)
            .filter(|head: &BackupHead| head.format == FORMAT)
            .ok_or_else(|| self.invalid("this is not a backup of a store"))?;
        let store = self.path.display().to_string();
        if head.schema > SCHEMA {
            return Err(Error::Newer { store, found: head.schema, known: SCHEMA });
        }
        if schema::checksum(head.schema).as_ref() != Some(&head.checksum) {
            return Err(Error::Altered { store, version: head.schema });
        }
        Ok(head)
    }
}

impl Tx {
    async fn has_content(&mut self) -> Result<bool, Error> {
        let count = sqlx::query_scalar(
            "SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM cursors) + (SELECT count(*) FROM principals) + \
             (SELECT count(*) FROM top_ups)",
        );
        let count: i64 = count.fetch_one(self.connection()).await.map_err(failed("look into the store"))?;
        Ok(count > 0)
    }

    /// Returns the host rows of all installations. No backup contains them, so a restore keeps them. Otherwise another
    /// host could claim the store before this host uses it again.
    async fn hosts(&mut self) -> Result<Vec<AnyRow>, Error> {
        let hosts = sqlx::query("SELECT * FROM hosts").fetch_all(self.connection()).await;
        hosts.map_err(failed("read which hosts the store serves"))
    }

    /// Inserts the rows of a backup, which was verified before.
    async fn insert_rows(&mut self, reader: &mut BackupReader<'_>) -> Result<Rows, Error> {
        let mut current_table = None;
        let mut rows = 0;
        loop {
            match reader.line()?.0 {
                BackupLine::Table { table, columns } => {
                    let is_known =
                        TABLES.contains(&table.as_str()) && columns.iter().all(|name| is_plain(name));
                    current_table = Some((table, columns)).filter(|_| is_known);
                }
                BackupLine::Row(values) => {
                    let (table, columns) = current_table
                        .as_ref()
                        .filter(|(_, columns)| columns.len() == values.len())
                        .ok_or_else(|| reader.invalid("this row belongs to no table"))?;
                    self.insert(table, columns, values).await?;
                    rows += 1;
                }
                BackupLine::End { .. } => return Ok(Rows(rows)),
            }
        }
    }

    async fn insert(&mut self, table: &str, columns: &[String], values: Vec<Value>) -> Result<(), Error> {
        // NULL is part of the statement: a bound NULL would have a type, which Postgres compares with the column's.
        let mut placeholders = Vec::with_capacity(values.len());
        let mut bound = 0;
        for value in &values {
            bound += usize::from(!value.is_null());
            placeholders.push(if value.is_null() { "NULL".to_owned() } else { format!("${bound}") });
        }
        let statement =
            format!("INSERT INTO {table} ({}) VALUES ({})", columns.join(", "), placeholders.join(", "));
        let mut query = sqlx::query(AssertSqlSafe(statement));
        for value in values {
            query = match value {
                Value::Null => query,
                Value::Number(number) => query.bind(number.as_i64()),
                Value::String(text) => query.bind(text),
                other => query.bind(other.to_string()),
            };
        }
        query.execute(self.connection()).await.map(drop).map_err(failed("restore a row"))
    }
}

/// Returns whether a name from a backup is safe in a statement.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}
