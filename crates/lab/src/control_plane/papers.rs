//! The authority of a control plane, and certificates that it signs.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};

use super::{Error, system};

/// An authority of its own.
pub struct Papers {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
pub struct Paper {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl Papers {
    /// Makes a new authority.
    pub fn new() -> Result<Self, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = subject("lab", &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        Ok(Self { issuer })
    }

    /// A certificate by which somebody is known to the API server.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<Paper, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(user, groups);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    /// A certificate by which a server of these names is known.
    pub fn server(&self, names: &[&str]) -> Result<Paper, Error> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = subject("kube-apiserver", &[]);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(&params)
    }

    /// The certificate of the authority, in PEM.
    pub fn authority(&self) -> String {
        self.issuer.pem()
    }

    /// A kubeconfig of somebody, for a server of this authority.
    pub fn kubeconfig(&self, server: &str, paper: &Paper) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: lab\nclusters:\n- name: lab\n  cluster:\n    \
             server: {server}\n    certificate-authority-data: {}\nusers:\n- name: lab\n  user:\n    \
             client-certificate-data: {}\n    client-key-data: {}\ncontexts:\n- name: lab\n  context:\n    \
             cluster: lab\n    user: lab\n",
            STANDARD.encode(self.authority()),
            STANDARD.encode(&paper.certificate),
            STANDARD.encode(&paper.key),
        )
    }

    /// Writes the authority's certificate and key as files `ca.crt` and `ca.key`.
    pub(super) fn write(&self, directory: &Path) -> Result<(), Error> {
        write(&directory.join("ca.crt"), &self.authority())?;
        write(
            &directory.join("ca.key"),
            &self.issuer.key().serialize_pem(),
        )
    }

    fn sign(&self, params: &CertificateParams) -> Result<Paper, Error> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Paper {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

/// Writes a file that nobody else reads.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(system("write a file"))
}

fn subject(name: &str, groups: &[&str]) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    for group in groups {
        subject.push(DnType::OrganizationName, *group);
    }
    subject.push(DnType::CommonName, name);
    subject
}
