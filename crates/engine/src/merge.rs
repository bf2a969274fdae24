//! Merging of counts, field by field.

/// Implements `merge`, which takes the counts of another value into this one. A field is summed (`sum`), or its larger
/// (`max`) or its later value (`last`) is kept; fields that merge themselves stand under `merge`. Every field must be
/// named: the pattern in `merge` does not compile without one.
macro_rules! merge {
    ($name:ident { $($how:ident: $($field:ident),+;)+ }) => {
        impl $name {
            /// Takes in the counts of `later`.
            pub(crate) fn merge(&mut self, later: &$name) {
                let $name { $($($field),+),+ } = *later;
                $($($crate::merge::merge!(@$how self.$field, $field);)+)+
            }
        }
    };
    (@sum $own:expr, $later:expr) => { $own += $later };
    (@max $own:expr, $later:expr) => { $own = $own.max($later) };
    (@last $own:expr, $later:expr) => { $own = $later };
    (@merge $own:expr, $later:expr) => { $own.merge(&$later) };
}

pub(crate) use merge;
