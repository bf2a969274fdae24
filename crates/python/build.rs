//! On macOS a module that Python loads has to be linked in a way of its own; elsewhere this does nothing.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
