//! The partitions of a store: a run of numbers, fixed when it is made. Those of two databases that share the tenants have no
//! number in common, since keys and event ids carry it. Next: `ids.rs`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partitions {
    first: u16,
    count: u16,
}

impl Partitions {
    pub const ONE: Partitions = Partitions { first: 1, count: 1 };
    /// Keys have 12 bits for the partition, and 0 stands for none.
    pub const LAST: u16 = 4_095;

    /// Numbered from 1; what is out of range is taken for the nearest.
    pub const fn of(count: u16) -> Partitions {
        match Partitions::run(1, count) {
            Some(run) => run,
            None => Partitions { first: 1, count: if count == 0 { 1 } else { Partitions::LAST } },
        }
    }

    /// `None`: there are no such numbers.
    pub const fn run(first: u16, count: u16) -> Option<Partitions> {
        let end = first as u32 + count as u32;
        if first > 0 && count > 0 && end <= Partitions::LAST as u32 + 1 {
            Some(Partitions { first, count })
        } else {
            None
        }
    }

    /// Where definitions are decided.
    pub fn first(self) -> u16 {
        self.first
    }

    pub fn last(self) -> u16 {
        self.first + (self.count - 1)
    }

    pub fn count(self) -> u16 {
        self.count
    }

    pub fn is_one(self) -> bool {
        self.count == 1
    }

    pub fn contains(self, partition: u16) -> bool {
        (self.first..=self.last()).contains(&partition)
    }

    pub fn iter(self) -> impl DoubleEndedIterator<Item = u16> + Clone {
        self.first..=self.last()
    }

    /// Of a number among all, from 0.
    pub fn index(self, partition: u16) -> Option<usize> {
        self.contains(partition).then(|| usize::from(partition - self.first))
    }

    /// One of them, the same for the same number.
    pub fn pick(self, number: u64) -> u16 {
        self.first + (number % u64::from(self.count)) as u16
    }

    pub fn overlaps(self, other: Partitions) -> bool {
        self.first <= other.last() && other.first <= self.last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_numbers_has_its_ends_and_no_others() {
        let run = Partitions::run(9, 8).unwrap();
        assert_eq!((run.first(), run.last(), run.count(), run.iter().count()), (9, 16, 8, 8));
        assert!(run.contains(9) && run.contains(16) && !run.contains(8) && !run.contains(17));
        assert_eq!((run.index(9), run.index(16), run.index(8), run.index(17)), (Some(0), Some(7), None, None));
        assert!((0..100).all(|number| run.contains(run.pick(number))));
    }

    #[test]
    fn there_is_no_partition_0_and_none_beyond_12_bits() {
        assert_eq!(Partitions::run(0, 1), None);
        assert_eq!(Partitions::run(1, 0), None);
        assert_eq!(Partitions::run(4_095, 2), None);
        assert_eq!(Partitions::run(u16::MAX, 2), None);
        assert_eq!(Partitions::run(4_095, 1).unwrap().last(), Partitions::LAST);
        assert_eq!(Partitions::of(0), Partitions::ONE);
    }

    #[test]
    fn runs_overlap_where_they_share_a_number() {
        let run = |first, count| Partitions::run(first, count).unwrap();
        assert!(run(1, 8).overlaps(run(8, 1)) && run(8, 1).overlaps(run(1, 8)) && run(1, 8).overlaps(run(3, 2)));
        assert!(!run(1, 8).overlaps(run(9, 8)) && !run(9, 8).overlaps(run(1, 8)));
    }
}
