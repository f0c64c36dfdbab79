//! The smallest complete PJRT plugin.
