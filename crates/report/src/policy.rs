//! The content security policy of a page: it loads nothing, and it runs these scripts and no other, whatever names it shows.

/// The policy of a page with these scripts. Charts set styles, and images are saved from data.
pub(crate) fn of(scripts: &[&str]) -> String {
    let allowed: Vec<String> =
        scripts.iter().map(|script| format!("'sha256-{}'", base64(&sha256(script.as_bytes())))).collect();
    format!(
        "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'",
        allowed.join(" ")
    )
}

/// Base64 (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=group.len()].copy_from_slice(group);
        let word = u32::from_be_bytes(word);
        for i in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * i)) as usize & 63];
            text.push(if i <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// The first `N` primes.
const fn primes<const N: usize>() -> [u64; N] {
    let (mut found, mut count, mut n) = ([0; N], 0, 2);
    while count < N {
        let mut divisor = 2;
        while divisor * divisor <= n && n % divisor != 0 {
            divisor += 1;
        }
        if divisor * divisor > n {
            found[count] = n;
            count += 1;
        }
        n += 1;
    }
    found
}

/// The first 32 bits of the fraction of the `power`-th root of `n`.
const fn root_fraction(n: u64, power: u32) -> u32 {
    // The largest x with x^power <= n * 2^(32 * power), bit by bit; x < 2^37, so a cube needs more than 64 bits.
    let (mut x, mut bit) = (0u128, 1u128 << 36);
    let most = (n as u128) << (32 * power);
    while bit > 0 {
        let next = x | bit;
        if next.pow(power) <= most {
            x = next;
        }
        bit >>= 1;
    }
    x as u32
}

const fn root_fractions<const N: usize>(power: u32) -> [u32; N] {
    let (mut fractions, primes, mut i) = ([0; N], primes::<N>(), 0);
    while i < N {
        fractions[i] = root_fraction(primes[i], power);
        i += 1;
    }
    fractions
}

/// Constants of SHA-256 (FIPS 180-4, sections 4.2.2 and 5.3.3): fractions of the cube roots and square roots of primes.
const ROUNDS: [u32; 64] = root_fractions(3);
const START: [u32; 8] = root_fractions(2);

/// SHA-256 (FIPS 180-4, section 6.2).
fn sha256(message: &[u8]) -> [u8; 32] {
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() - message.len() < 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let end = padded.len();
    padded[end - 8..].copy_from_slice(&(8 * message.len() as u64).to_be_bytes());
    let mut hash = START;
    for block in padded.chunks_exact(64) {
        let mut w = [0u32; 64];
        for (word, bytes) in w.iter_mut().zip(block.chunks_exact(4)) {
            *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
        }
        for t in 16..64 {
            let (a, b) = (w[t - 15], w[t - 2]);
            let low = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
            let high = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
            w[t] = high.wrapping_add(w[t - 7]).wrapping_add(low).wrapping_add(w[t - 16]);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = hash;
        for (k, w) in ROUNDS.iter().zip(w) {
            let chosen = e & f ^ !e & g;
            let turned = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let one = h.wrapping_add(turned).wrapping_add(chosen).wrapping_add(*k).wrapping_add(w);
            let turned = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let two = turned.wrapping_add(a & b ^ a & c ^ b & c);
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(one), c, b, a, one.wrapping_add(two));
        }
        for (sum, word) in hash.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *sum = sum.wrapping_add(word);
        }
    }
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(hash) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(message: &[u8]) -> String {
        sha256(message).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Test vectors of NIST's Secure Hash Standard Validation System, and lengths around the end of a block.
    #[test]
    fn hashes_are_those_of_the_standard() {
        assert_eq!(hex(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(
            hex(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
        assert_eq!(
            hex(&vec![b'a'; 1_000_000]),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        );
    }

    /// RFC 4648, section 10.
    #[test]
    fn base64_is_that_of_the_standard() {
        for (text, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
        ] {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
    }
}
