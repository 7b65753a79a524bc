//! Defines a section of settings by one list: the comment of each field is also its description for users.

/// Defines a struct and the function, named before `from`, that reads its fields in their order. A field is the setting
/// of its name, or of that behind `as`. It is read by the methods behind `=>`, or has the value behind `=`.
macro_rules! settings {
    (
        $(#[$about:meta])*
        pub struct $Name:ident $read:ident from $section:ident $(with $with:ident: $With:ty)? {
            $(
                $(#[doc = $doc:literal])+
                $(#[serde($($serde:tt)*)])?
                pub $field:ident: $T:ty
                    $(as $key:literal)?
                    $(=> $($how:ident($($argument:expr),*)).+)?
                    $(= $value:expr)?,
            )+
        }
    ) => {
        $(#[$about])*
        pub struct $Name {
            $(
                $(#[doc = $doc])+
                $(#[serde($($serde)*)])?
                pub $field: $T,
            )+
        }

        impl $Name {
            pub(super) fn $read($section: &$crate::config::Section<'_> $(, $with: $With)?) -> Self {
                Self {
                    $(
                        $field: $crate::config::settings!(
                            @value $section [$field $($key)?] [$($doc)+]
                                $(=> $($how($($argument),*)).+)?
                                $(= $value)?
                        ),
                    )+
                }
            }
        }
    };
    (@value $section:ident $key:tt [$($doc:literal)+] => $($how:ident($($argument:expr),*)).+) => {
        $section
            .field($crate::config::settings!(@key $key), concat!($($doc),+).trim_ascii_start())
            $(.$how($($argument),*))+
    };
    (@value $section:ident $key:tt [$($doc:literal)+] = $value:expr) => {
        $value
    };
    (@key [$field:ident]) => {
        stringify!($field)
    };
    (@key [$field:ident $key:literal]) => {
        $key
    };
}

pub(crate) use settings;
