//! Chance that a seed repeats: xoshiro256**, seeded by splitmix64. The only source of chance in a run.
//! It knows nothing of what is drawn. Next: `plan.rs`, what a seed draws first.

#[derive(Clone, Debug)]
pub struct Rng([u64; 4]);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        let mut at = seed;
        Rng([splitmix(&mut at), splitmix(&mut at), splitmix(&mut at), splitmix(&mut at)])
    }

    pub fn number(&mut self) -> u64 {
        let state = &mut self.0;
        let result = state[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        result
    }

    /// 0 where the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.number() % bound }
    }

    /// Both ends included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// So many times in a thousand.
    pub fn chance(&mut self, permille: u64) -> bool {
        self.below(1000) < permille
    }

    pub fn bytes(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.number().to_le_bytes());
        bytes[8..].copy_from_slice(&self.number().to_le_bytes());
        bytes
    }
}

fn splitmix(at: &mut u64) -> u64 {
    *at = at.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *at;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frozen: another generator would make every line of `seeds.txt` another run.
    #[test]
    fn a_seed_gives_the_same_numbers_for_ever() {
        let mut rng = Rng::new(1);
        assert_eq!([rng.number(), rng.number()], [12966619160104079557, 9600361134598540522]);
        assert!((0..100).all(|_| (3..=5).contains(&rng.between(3, 5))));
        assert!((0..100).all(|_| rng.chance(1000) && !rng.chance(0)));
    }
}
