//! Keeps a set of slot numbers as bits.

/// Set of slot numbers. Small numbers come first, so that the same few pages of the file are used again.
#[derive(Debug, Clone, Default)]
pub(super) struct SlotSet(Vec<u64>);

const WORD: u32 = u64::BITS;

impl SlotSet {
    pub(super) fn contains(&self, slot: u32) -> bool {
        self.0.get(word(slot)).is_some_and(|bits| bits & bit(slot) != 0)
    }

    pub(super) fn insert(&mut self, slot: u32) {
        if self.0.len() <= word(slot) {
            self.0.resize(word(slot) + 1, 0);
        }
        self.0[word(slot)] |= bit(slot);
    }

    pub(super) fn remove(&mut self, slot: u32) {
        if let Some(bits) = self.0.get_mut(word(slot)) {
            *bits &= !bit(slot);
        }
    }

    /// Returns the first slot of the first `length` adjacent ones, or the first slot of all if there are not so many.
    pub(super) fn first_run(&self, length: u32) -> Option<u32> {
        let mut run = 0;
        for slot in self.iter() {
            run = if slot > 0 && self.contains(slot - 1) { run + 1 } else { 1 };
            if run == length {
                return Some(slot + 1 - length);
            }
        }
        self.iter().next()
    }

    /// Returns the slots in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.0).flat_map(|(at, bits)| {
            let mut left = *bits;
            std::iter::from_fn(move || {
                let next = left.trailing_zeros();
                (next < WORD).then(|| {
                    left &= left - 1;
                    at * WORD + next
                })
            })
        })
    }
}

impl FromIterator<u32> for SlotSet {
    fn from_iter<I: IntoIterator<Item = u32>>(slots: I) -> Self {
        let mut set = Self::default();
        slots.into_iter().for_each(|slot| set.insert(slot));
        set
    }
}

const fn word(slot: u32) -> usize {
    (slot / WORD) as usize
}

const fn bit(slot: u32) -> u64 {
    1 << (slot % WORD)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_has_what_a_set_of_numbers_has(steps in prop::collection::vec((any::<bool>(), 0_u32..300), 0..400)) {
            let (mut set, mut model) = (SlotSet::default(), BTreeSet::new());
            for (insert, slot) in steps {
                if insert {
                    set.insert(slot);
                    model.insert(slot);
                } else {
                    set.remove(slot);
                    model.remove(&slot);
                }
            }
            prop_assert!(set.iter().eq(model.iter().copied()));
            let is_run = |slot: &&u32| (**slot..**slot + 4).all(|slot| model.contains(&slot));
            let expected = model.iter().find(is_run).or_else(|| model.first()).copied();
            prop_assert_eq!(set.first_run(4), expected);
        }
    }
}
