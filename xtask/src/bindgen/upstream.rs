//! placeholder
pub fn compare_with_upstream() -> anyhow::Result<()> {
    Ok(())
}
