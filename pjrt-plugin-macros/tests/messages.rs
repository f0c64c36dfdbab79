//! Tests of the errors for invalid uses of the attribute. The expected errors are in `ui/*.stderr`;
//! `TRYBUILD=overwrite` updates them.

#[test]
fn wrong_uses_are_explained_at_the_token_that_is_wrong() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*_is_refused.rs");
}

#[test]
fn right_uses_compile_in_a_crate_that_forbids_unsafe_code() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/*_is_exported.rs");
}
