//! Memory that makes uses of freed objects visible.

/// The byte that the memory consists of. An address or a length of these bytes is invalid.
const FILL: u8 = 0xA5;

/// Allocates memory of each small size and fills it. If the plugin freed an object shortly before, and has the allocator of the
/// process, the memory is that of the object as long as the caller keeps the returned value: whatever uses the object then
/// crashes.
pub(crate) fn overwrite_freed() -> Vec<Vec<u8>> {
    const SIZES: usize = 64;
    const OF_EACH: usize = 8;
    // Allocators round sizes up to a multiple of 16, after they add 8 bytes of their own.
    (1..=SIZES).flat_map(|units| (0..OF_EACH).map(move |_| vec![FILL; 16 * units - 8])).collect()
}
