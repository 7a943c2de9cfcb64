//! How a connection comes about: the URL with our own options taken out of it, the encryption, and the settings that every
//! session or, behind PgBouncer, every transaction begins with. Next: `tls.rs`, then `open.rs`.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Socket};

use crate::connection::Connection;
use crate::listen::Messages;
use crate::sql::{SCHEMA, Statements};
use crate::tls::{Tls, Trust};

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the database's URL: {0}")]
    Url(String),
    #[error("TLS: {0}")]
    Tls(String),
    #[error("PostgreSQL {0} is too old: 15 or newer is needed")]
    TooOld(String),
    #[error("connecting to the database: {}", shown(.0))]
    Postgres(#[from] tokio_postgres::Error),
    #[error("connecting to the database took longer than {0:?}")]
    TimedOut(Duration),
}

impl ConnectError {
    /// PgBouncer takes no settings of a session with the greeting; the server does.
    pub fn is_of_a_bouncer(&self) -> bool {
        matches!(self, ConnectError::Postgres(error) if error
            .as_db_error()
            .is_some_and(|answer| answer.message().contains("unsupported startup parameter")))
    }
}

/// An error of the client with what is behind it: by itself it says `db error`.
pub fn shown(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    if let Some(source) = std::error::Error::source(error) {
        let _ = write!(text, ": {source}");
    }
    text
}

/// What a URL says: `postgres://user@host/database?pgbouncer=true&schema=x&sslmode=verify-full&sslrootcert=/path`.
/// `pgbouncer`, `schema`, `sslrootcert` and the two verifying modes are ours, all else is the client's.
#[derive(Clone, Debug)]
pub struct Url {
    pub config: Config,
    pub schema: String,
    pub is_bouncer: bool,
    pub trust: Trust,
}

/// Where a URL leads, for people: no user, no password. Empty where it is no URL.
pub fn address_of(url: &str) -> String {
    let Ok(Url { config, schema, .. }) = Url::parse(url) else { return String::new() };
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(folder) => folder.display().to_string(),
    });
    let port = |n: usize| config.get_ports().get(n).or(config.get_ports().first()).copied().unwrap_or(5432);
    let addresses: Vec<String> = hosts.enumerate().map(|(n, host)| format!("{host}:{}", port(n))).collect();
    let schema = if schema == SCHEMA { String::new() } else { format!("?schema={schema}") };
    format!("{}/{}{schema}", addresses.join(","), config.get_dbname().unwrap_or_default())
}

impl Url {
    pub fn parse(url: &str) -> Result<Url, ConnectError> {
        let bad = |text: &str| ConnectError::Url(text.to_owned());
        let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut schema, mut is_bouncer, mut mode, mut root) = (SCHEMA.to_owned(), false, None, None);
        let mut others = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("schema", name)) => schema = name.to_owned(),
                Some(("pgbouncer", value)) => is_bouncer = value == "true",
                Some(("sslmode", value)) => mode = Some(value.to_owned()),
                Some(("sslrootcert", path)) => root = Some(PathBuf::from(path)),
                _ => others.push(pair),
            }
        }
        if !is_url {
            return Err(bad("it must begin with postgres://"));
        }
        // What follows would be taken for the database's name, and shown with its password.
        if base.matches("://").count() > 1 || query.contains("://") {
            return Err(bad("it names more than one database"));
        }
        if !is_plain_name(&schema) {
            return Err(bad("a schema's name is made of lower-case letters, digits and underscores"));
        }
        let plain = format!("{base}?{}", others.join("&"));
        // The client's own message may hold the URL, and with it the password.
        let mut config: Config = plain.parse().map_err(|_| bad("it cannot be read"))?;
        let (mode, trust) = trust_of(mode.as_deref().unwrap_or("prefer"), root)?;
        config.ssl_mode(mode);
        Ok(Url { config, schema, is_bouncer, trust })
    }
}

/// Such a name needs no quotes and hides nothing.
fn is_plain_name(name: &str) -> bool {
    let starts = name.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '_');
    starts
        && name.len() <= 63
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// As libpq has it: `prefer` encrypts where the server can, `require` always; both believe any certificate unless a root is
/// given; `verify-ca` wants one that a root has signed, `verify-full` also the host's name in it.
fn trust_of(mode: &str, root: Option<PathBuf>) -> Result<(SslMode, Trust), ConnectError> {
    Ok(match (mode, root) {
        ("disable", _) => (SslMode::Disable, Trust::Anything),
        ("prefer" | "allow", None) => (SslMode::Prefer, Trust::Anything),
        ("prefer" | "allow", Some(root)) => (SslMode::Prefer, Trust::Signed(Some(root))),
        ("require", None) => (SslMode::Require, Trust::Anything),
        ("require" | "verify-ca", root) => (SslMode::Require, Trust::Signed(root)),
        ("verify-full", root) => (SslMode::Require, Trust::SignedAndNamed(root)),
        (other, _) => return Err(ConnectError::Url(format!("there is no sslmode {other:?}"))),
    })
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Short statements that somebody waits for.
    Turns,
    /// Lists and details.
    Reads,
    /// A reader that takes its time within one transaction.
    Ledger,
}

/// How long what may take. All of it is told to the server, so that a session whose client is gone ends by itself.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub connect: Duration,
    /// One statement of a turn, with the locks that it waits for.
    pub statement: Duration,
    /// A lock, while other turns wait behind: then it is waited for apart from them, as long as a statement may take.
    pub lock: Duration,
    /// One read of a list.
    pub list: Duration,
    /// A transaction of a turn that waits for its client: shorter than anybody wants to wait for its locks.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connect: Duration::from_secs(5),
            statement: Duration::from_secs(15),
            lock: Duration::from_millis(250),
            list: Duration::from_secs(60),
            silence: Duration::from_secs(5),
        }
    }
}

pub struct Connector {
    config: Config,
    tls: Tls,
    statements: Arc<Statements>,
    is_bouncer: bool,
    limits: Limits,
    begin: Begin,
}

/// How transactions of a connection begin: behind PgBouncer, with all of the session's settings.
#[derive(Clone, Debug)]
pub struct Begin {
    /// What waits for a lock for long is given up.
    pub hasty: String,
    pub write: String,
    /// One state for all statements, nothing to be written.
    pub snapshot: String,
}

impl Begin {
    fn with(local: &str) -> Begin {
        let snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        Begin {
            hasty: format!("BEGIN{local}"),
            write: format!("BEGIN{local}; SET LOCAL lock_timeout = 0"),
            snapshot: format!("{snapshot}{local}"),
        }
    }
}

impl Connector {
    pub fn new(
        url: &Url,
        name: &str,
        purpose: Purpose,
        limits: Limits,
        statements: Arc<Statements>,
    ) -> Result<Connector, ConnectError> {
        let mut config = url.config.clone();
        config.application_name(format!("onceflow {name}"));
        config.connect_timeout(limits.connect);
        config
            .keepalives_idle(Duration::from_secs(5))
            .keepalives_interval(Duration::from_secs(2))
            .keepalives_retries(3);
        config.tcp_user_timeout(limits.statement);
        if config.get_hosts().len() > 1 {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let settings = settings(purpose, limits);
        if !url.is_bouncer {
            let given = config.get_options().map(|options| format!("{options} ")).unwrap_or_default();
            let ours: Vec<String> = settings.iter().map(|(name, value)| format!("-c {name}={value}")).collect();
            config.options(given + &ours.join(" "));
        }
        let local = settings.iter().map(|(name, value)| format!("; SET LOCAL {name} = {value}"));
        let local = local.collect::<String>() + "; " + DURABLE_HERE;
        let begin = Begin::with(if url.is_bouncer { &local } else { "" });
        let tls = Tls::new(&url.trust)?;
        Ok(Connector { config, tls, statements, is_bouncer: url.is_bouncer, limits, begin })
    }

    pub fn begin(&self) -> &Begin {
        &self.begin
    }

    pub async fn connect(&self) -> Result<Connection, ConnectError> {
        let limit = 2 * self.limits.connect;
        let made = async {
            let (client, connection) = self.config.connect(self.tls.clone()).await?;
            let driver = drive(connection);
            let connection = Connection::new(client, driver, self.statements.clone(), !self.is_bouncer);
            self.greet(connection.client()).await?;
            Ok(connection)
        };
        tokio::time::timeout(limit, made).await.unwrap_or(Err(ConnectError::TimedOut(limit)))
    }

    /// For LISTEN: its messages are the caller's to read, and nothing goes on unless they are.
    pub async fn listener(&self) -> Result<(Client, Messages<<Tls as MakeTlsConnect<Socket>>::Stream>), ConnectError> {
        let limit = 2 * self.limits.connect;
        let made = tokio::time::timeout(limit, self.config.connect(self.tls.clone())).await;
        let (client, connection) = made.map_err(|_| ConnectError::TimedOut(limit))??;
        Ok((client, Messages(connection)))
    }

    async fn greet(&self, client: &Client) -> Result<(), ConnectError> {
        if !self.is_bouncer {
            client.batch_execute(DURABLE).await?;
        }
        Ok(())
    }
}

/// A commit that is answered is on the disk. A stronger setting (of a standby) stays as it is.
const DURABLE: &str = "SELECT set_config('synchronous_commit', 'on', false) \
                       WHERE current_setting('synchronous_commit') IN ('off', 'local')";
const DURABLE_HERE: &str = "SELECT set_config('synchronous_commit', 'on', true) \
                            WHERE current_setting('synchronous_commit') IN ('off', 'local')";

/// Every statement of ours finds its rows by an index, whatever the statistics of a young table say: a plan is made once
/// and kept.
fn settings(purpose: Purpose, limits: Limits) -> Vec<(&'static str, String)> {
    let ms = |limit: Duration| limit.as_millis().to_string();
    let mut settings = vec![("jit", "off".to_owned())];
    if purpose != Purpose::Ledger {
        settings.extend(plan_settings().map(|(name, value)| (name, value.to_owned())));
    }
    match purpose {
        Purpose::Turns => {
            settings.push(("statement_timeout", ms(limits.statement)));
            settings.push(("lock_timeout", ms(limits.lock)));
            settings.push(("idle_in_transaction_session_timeout", ms(limits.silence)));
        }
        Purpose::Reads => {
            settings.push(("statement_timeout", ms(limits.list)));
            settings.push(("idle_in_transaction_session_timeout", ms(limits.silence)));
        }
        Purpose::Ledger => {
            settings.push(("statement_timeout", "0".to_owned()));
            settings.push(("idle_in_transaction_session_timeout", "0".to_owned()));
        }
    }
    settings
}

pub fn plan_settings() -> [(&'static str, &'static str); 5] {
    let off = |name| (name, "off");
    let [seqscan, bitmapscan, hashjoin, mergejoin] =
        ["enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin"].map(off);
    [seqscan, bitmapscan, hashjoin, mergejoin, ("plan_cache_mode", "force_generic_plan")]
}

/// The socket is read and written by a task of its own; it ends with the client.
fn drive<S>(connection: tokio_postgres::Connection<Socket, S>) -> tokio::task::AbortHandle
where
    S: tokio_postgres::tls::TlsStream + Unpin + Send + 'static,
{
    let driven = tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = %shown(&error), "a connection to the database has ended");
        }
    });
    driven.abort_handle()
}
