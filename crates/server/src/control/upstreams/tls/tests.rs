//! Files of certificates.
