//! Claim: no command replaces a device, a pipe or a link. It writes to what is there, or it refuses the option.

#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A lab of two sockets, and a scenario that takes milliseconds.
const LAB: &str = "[fabric]\nspines = 2\n[[port]]\nname = \"a\"\nunix = { bind = \"a.sock\", peer = \"x.sock\" }\n\
                   [[port]]\nname = \"b\"\nunix = { bind = \"b.sock\", peer = \"y.sock\" }\n";
const SMALL: &str = "[topology.leaf-spine]\nleaves = 2\nspines = 1\nhosts-per-leaf = 2\n\
                     [[workload]]\npermutation = { bytes = \"20kB\" }\n";
const GOAL: &str =
    "num_ranks 2\nrank 0 {\nl1: send 10b to 1 tag 0\n}\nrank 1 {\nl1: recv 10b from 0 tag 0\n}\n";

struct Case(TempDir);

impl Case {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        for (name, text) in [("lab.toml", LAB), ("small.toml", SMALL), ("two.goal", GOAL)] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        Case(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs a command that writes to `odd`; returns its exit code and what it says on standard error.
    fn run(&self, words: &str) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ropewalk"));
        command.args(words.split(' ')).current_dir(self.0.path()).env("NO_COLOR", "1");
        command.stdin(File::open("/dev/null").unwrap()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        if words.starts_with("tor ") {
            self.end_when_open(&mut child);
        }
        let output = child.wait_with_output().unwrap();
        (output.status.code().unwrap_or(-1), String::from_utf8(output.stderr).unwrap())
    }

    /// Ends a ToR once its ports are open.
    fn end_when_open(&self, child: &mut Child) {
        let mut looks = 0;
        while !self.path("b.sock").exists() && child.try_wait().unwrap().is_none() {
            assert!(looks < 12_000, "the ToR opens no port within a minute");
            std::thread::sleep(Duration::from_millis(5));
            looks += 1;
        }
        std::thread::sleep(Duration::from_millis(100));
        let id = nix::unistd::Pid::from_raw(child.id() as i32);
        // A ToR that has refused its option hears nothing.
        let _ = nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM);
    }
}

/// Commands that write a file or a directory to `odd`.
const FILES: [&str; 6] = [
    "run small.toml -q -o out --report odd",
    "compare small.toml --schemes ecmp,ar -q --report odd",
    "tor lab.toml --status odd",
    "tor lab.toml --status s.json --metrics odd",
    "tor lab.toml --status s.json --record odd",
    "tor lab.toml --status s.json --pcap odd",
];
const DIRECTORIES: [&str; 3] =
    ["run small.toml -q -o odd", "compare small.toml --schemes ecmp,ar -q -o odd", "serve small.toml -o odd"];

fn is_device(path: &Path) -> bool {
    fs::metadata(path).unwrap().file_type().is_char_device()
}

#[test]
fn a_device_is_written_to_and_stays_a_device() {
    for words in FILES {
        let case = Case::new();
        symlink("/dev/null", case.path("odd")).unwrap();
        let (code, errors) = case.run(words);
        assert_eq!(code, 0, "{words}: {errors}");
        assert!(case.path("odd").is_symlink() && is_device(&case.path("odd")), "{words}");
    }
    for words in FILES {
        let case = Case::new();
        let (code, errors) = case.run(&words.replace("odd", "/dev/null"));
        assert_eq!(code, 0, "{words}: {errors}");
        assert!(is_device(Path::new("/dev/null")), "{words}");
    }
    for words in DIRECTORIES {
        let case = Case::new();
        symlink("/dev/null", case.path("odd")).unwrap();
        let (code, errors) = case.run(words);
        assert_eq!(code, 2, "{words}: {errors}");
        assert!(case.path("odd").is_symlink() && is_device(&case.path("odd")), "{words}");
    }
}

#[test]
fn a_link_is_followed_and_stays_a_link() {
    for words in FILES {
        let case = Case::new();
        fs::create_dir(case.path("there")).unwrap();
        symlink("there/file", case.path("odd")).unwrap();
        for time in ["first", "second"] {
            drop(fs::remove_file(case.path("a.sock")).and(fs::remove_file(case.path("b.sock"))));
            let (code, errors) = case.run(words);
            assert_eq!(code, 0, "{words}, {time}: {errors}");
            assert!(case.path("odd").is_symlink() && case.path("there/file").is_file(), "{words}, {time}");
        }
        let left: Vec<_> =
            fs::read_dir(case.path("there")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["file"], "{words}");
    }
    for words in &DIRECTORIES[..2] {
        let case = Case::new();
        symlink("there", case.path("odd")).unwrap();
        for time in ["first", "second"] {
            let (code, errors) = case.run(words);
            assert_eq!(code, 0, "{words}, {time}: {errors}");
            assert!(case.path("odd").is_symlink() && case.path("there").is_dir(), "{words}, {time}");
            assert!(fs::read_dir(case.path("there")).unwrap().count() > 0, "{words}, {time}");
        }
    }
}

#[test]
fn a_pipe_is_written_to_or_refused_and_stays_a_pipe() {
    for words in FILES.iter().chain(&DIRECTORIES) {
        let case = Case::new();
        let odd = case.path("odd");
        nix::unistd::mkfifo(&odd, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let open = fs::OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(&odd).unwrap();
        let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let over = done.clone();
        let reader = std::thread::spawn(move || {
            let (mut pipe, mut all, mut part) = (open, Vec::<u8>::new(), vec![0; 1 << 16]);
            loop {
                let last = over.load(std::sync::atomic::Ordering::SeqCst);
                match pipe.read(&mut part) {
                    Ok(read) if read > 0 => all.extend(&part[..read]),
                    _ if last => return all,
                    _ => std::thread::sleep(Duration::from_millis(2)),
                }
            }
        });
        let (code, errors) = case.run(words);
        done.store(true, std::sync::atomic::Ordering::SeqCst);
        let read = reader.join().unwrap();
        assert!(fs::symlink_metadata(&odd).unwrap().file_type().is_fifo(), "{words}");
        match code {
            0 => assert!(!read.is_empty(), "{words}: nothing came through"),
            2 => assert!(errors.contains("odd"), "{words}: {errors}"),
            other => panic!("{words}: {other} {errors}"),
        }
    }
}
