//! Random damage to files, for the tests of readers.

/// SplitMix64: draws that are the same on every machine.
pub struct Draws(pub u64);

impl Draws {
    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }

    fn word<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.below(words.len())]
    }

    /// The text with a random change; new words come from `words`.
    pub fn change(&mut self, text: &str, words: &[&str]) -> String {
        let mut lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
        let row = self.below(lines.len());
        if lines.is_empty() {
            return self.word(words).to_owned();
        }
        let column = self.below(lines[row].len());
        match self.below(7) {
            0 => lines[row][column] = self.word(words),
            1 => lines[row].insert(column, self.word(words)),
            2 => drop(lines[row].remove(column)),
            3 => drop(lines.remove(row)),
            4 => lines.insert(row, lines[row].clone()),
            5 => {
                let other = self.below(lines.len());
                lines.swap(row, other);
            }
            _ => {
                let mut chars: Vec<char> = text.chars().collect();
                let (at, new) = (self.below(chars.len()), self.below(128) as u8 as char);
                match self.below(3) {
                    0 => chars[at] = new,
                    1 => chars.insert(at, new),
                    _ => chars.truncate(at),
                }
                return chars.into_iter().collect();
            }
        }
        lines.iter().map(|line| line.join(" ") + "\n").collect()
    }

    /// Changes a byte, or a number of 4 bytes, of a binary file, or cuts the file off.
    pub fn damage(&mut self, file: &mut Vec<u8>) {
        let at = self.below(file.len());
        let numbers = [0, 1, 2, 3, 8, 38, 0x7fff_ffff, 0x4000_0000, u32::MAX - 1, u32::MAX];
        match self.below(8) {
            0 => file.truncate(at),
            1..3 if at < file.len() => file[at] = self.below(256) as u8,
            3 if at < file.len() => file[at] ^= 1 << self.below(8),
            _ => {
                let number = numbers[self.below(numbers.len())].to_le_bytes();
                file.iter_mut().skip(at).zip(number).for_each(|(byte, new)| *byte = new);
            }
        }
    }
}
