//! Philox-4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").

/// Applies the block function to a 128-bit counter, lowest word first.
pub(super) fn philox_one(key: u64, counter: u128) -> [u32; 4] {
    let mut x = [counter as u32, (counter >> 32) as u32, (counter >> 64) as u32, (counter >> 96) as u32];
    let mut k = [key as u32, (key >> 32) as u32];
    for _ in 0..10 {
        let p0 = u64::from(x[0]) * 0xd251_1f53;
        let p1 = u64::from(x[2]) * 0xcd9e_8d57;
        x = [(p1 >> 32) as u32 ^ x[1] ^ k[0], p1 as u32, (p0 >> 32) as u32 ^ x[3] ^ k[1], p0 as u32];
        k = [k[0].wrapping_add(0x9e37_79b9), k[1].wrapping_add(0xbb67_ae85)];
    }
    x
}
