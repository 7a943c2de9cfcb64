//! SPDX licence expressions: may code under this one be part of a program under Apache-2.0 or MIT, without further duties
//! than to name it?

/// The same list stands in `deny.toml`.
const PERMISSIVE: [&str; 15] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// Of `A OR B` one suffices, of `A AND B` both are needed. What cannot be read is refused.
pub fn is_permissive(expression: &str) -> bool {
    // Older packages write A/B for A OR B.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words: Vec<&str> = spaced.split_whitespace().rev().collect();
    any(&mut words) == Some(true) && words.is_empty()
}

/// The words still to read stand in reverse: the next one is the last.
fn any(words: &mut Vec<&str>) -> Option<bool> {
    let mut permissive = all(words)?;
    while words.pop_if(|word| *word == "OR").is_some() {
        permissive |= all(words)?;
    }
    Some(permissive)
}

fn all(words: &mut Vec<&str>) -> Option<bool> {
    let mut permissive = one(words)?;
    while words.pop_if(|word| *word == "AND").is_some() {
        permissive &= one(words)?;
    }
    Some(permissive)
}

fn one(words: &mut Vec<&str>) -> Option<bool> {
    match words.pop()? {
        "(" => {
            let permissive = any(words)?;
            words.pop_if(|word| *word == ")").map(|_| permissive)
        }
        name if words.pop_if(|word| *word == "WITH").is_some() => {
            let exception = words.pop()?;
            Some(PERMISSIVE.contains(&format!("{name} WITH {exception}").as_str()))
        }
        name => Some(PERMISSIVE.contains(&name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        let permissive = [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-2.0-only OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
            "MIT OR GPL-3.0-only AND AGPL-3.0-only",
        ];
        let refused = [
            "",
            "GPL-3.0-only",
            "MPL-2.0",
            "MIT AND GPL-3.0-only",
            "(MIT OR Apache-2.0) AND LGPL-2.1-only",
            "Apache-2.0 WITH Some-exception",
            "(MIT",
            "MIT)",
            "MIT Apache-2.0",
            "MIT OR",
        ];
        assert!(permissive.iter().all(|expression| is_permissive(expression)));
        assert!(!refused.iter().any(|expression| is_permissive(expression)));
    }
}
