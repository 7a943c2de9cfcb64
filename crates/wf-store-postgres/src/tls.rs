//! Encryption by rustls. Whom it believes is the caller's choice (`connect.rs`). Next: `open.rs`.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::connect::ConnectError;

/// Which certificates are believed. Without a file of roots, the system's are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Whoever answers: against listeners, not against impostors.
    Anything,
    /// One that a root has signed, for whatever name.
    Signed(Option<PathBuf>),
    SignedAndNamed(Option<PathBuf>),
}

#[derive(Clone)]
pub struct Tls(Arc<ClientConfig>);

impl Tls {
    pub fn new(trust: &Trust) -> Result<Tls, ConnectError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
        let verifier = verifier(trust, provider)?;
        let config = builder.map_err(tls_error)?.dangerous().with_custom_certificate_verifier(verifier);
        Ok(Tls(Arc::new(config.with_no_client_auth())))
    }
}

fn tls_error(error: impl std::fmt::Display) -> ConnectError {
    ConnectError::Tls(error.to_string())
}

fn verifier(trust: &Trust, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, ConnectError> {
    let signed = |root: &Option<PathBuf>| -> Result<Arc<WebPkiServerVerifier>, ConnectError> {
        let roots = Arc::new(roots(root.as_deref())?);
        WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build().map_err(tls_error)
    };
    Ok(match trust {
        Trust::Anything => Arc::new(Lenient { provider: provider.clone(), signed: None }),
        Trust::Signed(root) => Arc::new(Lenient { provider: provider.clone(), signed: Some(signed(root)?) }),
        Trust::SignedAndNamed(root) => signed(root)?,
    })
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, ConnectError> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        let native = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(native.certs);
        return Ok(roots);
    };
    let named = |error: &dyn std::fmt::Display| ConnectError::Tls(format!("{}: {error}", file.display()));
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| named(&error))? {
        let certificate = certificate.map_err(|error| named(&error))?;
        roots.add(certificate).map_err(|error| named(&error))?;
    }
    Ok(roots)
}

/// Believes a certificate for any name, and without `signed` any certificate at all; signatures are always checked.
#[derive(Debug)]
struct Lenient {
    provider: Arc<CryptoProvider>,
    signed: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(signed) = &self.signed else { return Ok(ServerCertVerified::assertion()) };
        match signed.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The chain is checked before the name.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Encrypted;
    type TlsConnect = ToHost;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<ToHost, io::Error> {
        // A Unix socket's folder is no name, and no server encrypts there.
        let name = ServerName::try_from(host.to_owned()).map_err(|error| format!("{host:?}: {error}"));
        Ok(ToHost { connector: TlsConnector::from(self.0.clone()), name })
    }
}

pub struct ToHost {
    connector: TlsConnector,
    name: Result<ServerName<'static>, String>,
}

impl TlsConnect<Socket> for ToHost {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let name = self.name.map_err(io::Error::other)?;
            self.connector.connect(name, socket).await.map(|stream| Encrypted(Box::new(stream)))
        })
    }
}

pub struct Encrypted(Box<TlsStream<Socket>>);

impl tokio_postgres::tls::TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
}
