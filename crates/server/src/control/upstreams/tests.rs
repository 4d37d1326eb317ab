//! Reloads, and questions to upstreams that are scripted.
