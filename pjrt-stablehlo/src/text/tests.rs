//! Tests of the text reader on small programs.
