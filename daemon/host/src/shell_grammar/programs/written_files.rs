//! Files that programs write although no table says so: those that an archive or a patch names, what comes from another machine into a
//! folder, and those that are changed in place. Which names an archive has is not known, so that only the folder counts.

use super::{FileAccess, FileUse, Reading};
use crate::shell_grammar::arg::Arg;

/// When a program writes files of such names.
#[derive(Clone, Copy)]
enum WritesWhen {
    Always,
    /// One of these words is among its own.
    Word(&'static str),
    /// One of these letters is an option, also in its first word without a dash: `tar xf`.
    Letter(&'static str),
}

struct UnnamedWrites {
    /// Names of the program, and the words that choose the operation.
    programs: &'static str,
    verbs: &'static str,
    when: WritesWhen,
    /// With one of these options it writes none.
    unless: &'static str,
    /// Options that name the folder; else it is the one that the program runs in.
    folder: &'static str,
    /// The last operand is the folder, unless it is on another machine: `host:x`, `s3://x`.
    is_last: bool,
}

const fn row(
    programs: &'static str,
    verbs: &'static str,
    when: WritesWhen,
    unless: &'static str,
    folder: &'static str,
) -> UnnamedWrites {
    UnnamedWrites { programs, verbs, when, unless, folder, is_last: false }
}

const fn into_last(programs: &'static str, verbs: &'static str) -> UnnamedWrites {
    UnnamedWrites { is_last: true, ..row(programs, verbs, WritesWhen::Always, "", "") }
}

use WritesWhen::{Always, Letter, Word};

/// Read from the programs' own manuals.
const ROWS: &[UnnamedWrites] = &[
    row("patch", "", Always, "--dry-run -o --output", "-d --directory"),
    row("tar gtar bsdtar", "", Letter("x"), "-O --to-stdout", "-C --directory --cd"),
    row("tar gtar bsdtar", "", Word("--extract --get"), "-O --to-stdout", "-C --directory --cd"),
    row("unzip", "", Always, "-l -t -v -Z -z -p -c --help", "-d"),
    row("cpio", "", Letter("i"), "-t --list --to-stdout", "-D --directory"),
    row("cpio", "", Word("--extract"), "-t --list --to-stdout", "-D --directory"),
    UnnamedWrites { is_last: true, ..row("cpio", "", Letter("p"), "", "-D --directory") },
    row("pax", "", Letter("r"), "", ""),
    row("7z 7za 7zr 7zz", "", Word("x e"), "-so", "-o"),
    row("unrar rar", "", Word("x e"), "", ""),
    row("ar", "", Letter("x"), "", "--output"),
    row("jar", "", Letter("x"), "", "-C --dir"),
    row("jar", "", Word("--extract"), "", "-C --dir"),
    row("hg", "import", Always, "", "--cwd"),
    row("svn", "patch", Always, "--dry-run", ""),
    row("quilt", "push", Always, "", ""),
    row("gh", "release download", Always, "-O --output", "-D --dir"),
    row("gh", "run download", Always, "", "-D --dir"),
    into_last("aws", "s3 cp"),
    into_last("aws", "s3 mv"),
    into_last("aws", "s3 sync"),
    into_last("gsutil", "cp"),
    into_last("gsutil", "mv"),
    into_last("gsutil", "rsync"),
    into_last("gcloud", "storage cp"),
    into_last("gcloud", "storage mv"),
    into_last("gcloud", "storage rsync"),
    into_last("oc", "cp"),
    into_last("oc", "rsync"),
    into_last("docker-compose podman-compose", "cp"),
    into_last("lxc incus", "file pull"),
    into_last("multipass", "transfer"),
    into_last("rclone", "copy"),
    into_last("rclone", "copyto"),
    into_last("rclone", "sync"),
    into_last("ditto", ""),
];

/// Programs that replace a file by another one without its ending, with the letter by which they do so; none where they always do.
const UNPACK: &[(&str, &str, &[&str])] = &[
    ("gzip", "d", &[".gz", ".z", ".Z"]),
    ("gunzip", "", &[".gz", ".z", ".Z"]),
    ("pigz", "d", &[".gz"]),
    ("unpigz", "", &[".gz"]),
    ("uncompress", "", &[".Z"]),
    ("xz", "d", &[".xz", ".lzma"]),
    ("unxz", "", &[".xz", ".lzma"]),
    ("lzma", "d", &[".lzma"]),
    ("unlzma", "", &[".lzma"]),
    ("bzip2", "d", &[".bz2"]),
    ("bunzip2", "", &[".bz2"]),
    ("zstd", "d", &[".zst"]),
    ("unzstd", "", &[".zst"]),
    ("lz4", "d", &[".lz4"]),
    ("unlz4", "", &[".lz4"]),
    ("brotli", "d", &[".br"]),
];

/// A patch that a command applies.
#[derive(Clone, Debug)]
pub(in crate::shell_grammar) struct Patch {
    pub(in crate::shell_grammar) file: Arg,
    /// So many parts at the beginning of each name are left out; all but the last where it is not given.
    strip: Option<usize>,
    folder: Option<Arg>,
}

impl Patch {
    /// The patch of `git apply FILE`, `git am FILE` and `patch -i FILE`.
    fn of(name: &str, words: &[Arg]) -> Option<Self> {
        let (words, default, options) = match name {
            "patch" if !is_given(words, "--dry-run -o --output") => (words, None, "-i --input"),
            "git" => {
                let at = words.iter().position(|word| word.is("apply") || word.is("am"))?;
                (&words[at + 1..], Some(1), "")
            }
            _ => return None,
        };
        if is_given(words, "--stat --numstat --summary --check --cached --abort --quit --skip") {
            return None;
        }
        let value = |options: &str| named_by(words, options).pop();
        let file = match options {
            "" => operands(words).next().cloned(),
            options => value(options),
        };
        let strip = value("-p --strip").and_then(|value| value.literal().and_then(|text| text.parse().ok()));
        Some(Self { file: file?, strip: strip.or(default), folder: value("-d --directory") })
    }

    /// The files that it changes, as the text of the patch names them.
    pub(in crate::shell_grammar) fn files(&self, text: &str) -> Vec<FileUse> {
        const STARTS: [&str; 6] = ["+++ ", "--- ", "rename to ", "rename from ", "copy to ", "Index: "];
        let named = text.lines().filter_map(|line| STARTS.iter().find_map(|start| line.strip_prefix(start)));
        let names = named.filter_map(|name| {
            let name = name.split('\t').next().unwrap_or_default().trim().trim_matches('"');
            let parts: Vec<&str> = name.split('/').collect();
            let skipped = self.strip.unwrap_or(parts.len().saturating_sub(1));
            let plain = parts.get(skipped..).filter(|parts| !parts.is_empty()).map(|parts| parts.join("/"));
            plain.filter(|_| name != "/dev/null")
        });
        let mut found: Vec<FileUse> = Vec::new();
        for name in names.take(MAX_PATCHED) {
            let file = FileUse { folder: self.folder.clone(), ..FileUse::new(FileAccess::Write, Arg::text(&name)) };
            if !found.iter().any(|known| known.arg == file.arg) {
                found.push(file);
            }
        }
        found
    }
}

/// More files of a patch are not looked at one by one.
const MAX_PATCHED: usize = 100;

/// The values of options, in the next word or attached.
pub(super) fn named_by(words: &[Arg], options: &str) -> Vec<Arg> {
    let named = words.iter().enumerate().filter_map(|(at, word)| {
        let option = options.split_whitespace().find(|option| word.start().starts_with(option))?;
        match word.start().len() - option.len() {
            0 => words.get(at + 1).cloned(),
            _ if word.start().as_bytes().get(option.len()) == Some(&b'=') => Some(word.without_start(option.len() + 1)),
            _ if !option.starts_with("--") => Some(word.without_start(option.len())),
            _ => None,
        }
    });
    named.collect()
}

/// Adds them to the files of a command. `words` are those behind the name of the program.
pub(super) fn add(name: &str, words: &[Arg], reading: &mut Reading) {
    reading.patch = Patch::of(name, words);
    for row in ROWS.iter().filter(|row| row.programs.split(' ').any(|program| program == name) && row.writes(words)) {
        row.add(words, reading);
    }
    if let Some((_, letter, endings)) = UNPACK.iter().find(|(program, ..)| *program == name) {
        // What it packs, it reads; with `-c` it only shows it.
        let packed = reading.files.iter().filter(|file| file.is_operand && file.how == FileAccess::Write);
        let read: Vec<FileUse> = packed.map(|file| FileUse { how: FileAccess::Read, ..file.clone() }).collect();
        if is_given(words, "-c --stdout --to-stdout -t -l --test --list") {
            reading.files.retain(|file| !(file.is_operand && file.how == FileAccess::Write));
        }
        reading.files.extend(read);
        unpacked(words, letter, endings, reading);
    }
    names_of_its_own(name, reading);
    // Other files say which files it reads.
    reading.hides_file |= match name {
        "cpio" => words.iter().any(|word| has_letter(word, "op") || word.is("--create") || word.is("--pass-through")),
        "pax" => words.iter().any(|word| has_letter(word, "w")) && operands(words).next().is_none(),
        "7z" | "7za" | "7zr" | "7zz" | "bsdtar" | "ar" | "gar" => {
            words.iter().any(|word| word.start().starts_with('@'))
        }
        _ => false,
    };
    match name {
        "sponge" => reading.files.extend(operands(words).cloned().map(|file| FileUse::new(FileAccess::Write, file))),
        // Without `-w` it shows what it would write.
        "gofmt" if !is_given(words, "-w") => {
            for file in reading.files.iter_mut().filter(|file| file.how == FileAccess::Write) {
                // In a folder it reads what ends so.
                let is_source = file.arg.start().ends_with(".go");
                file.how = if is_source { FileAccess::Read } else { FileAccess::List };
            }
        }
        "perl" | "ruby" => changed_in_place(words, reading),
        _ => {}
    }
}

/// Programs that write files whose names begin as one of their words says, and end as they choose: these names count, as far
/// as there are such files.
fn names_of_its_own(name: &str, reading: &mut Reading) {
    let usual = match name {
        "split" => "x",
        "csplit" => "xx",
        _ => return,
    };
    let mut prefixes: Vec<FileUse> =
        reading.files.iter().filter(|file| file.how == FileAccess::Write).cloned().collect();
    if prefixes.is_empty() {
        prefixes.push(FileUse::new(FileAccess::Write, Arg::text(usual)));
    }
    reading.files.extend(prefixes.into_iter().map(|file| FileUse { arg: file.arg.followed_by_any(), ..file }));
}

fn operands(words: &[Arg]) -> impl DoubleEndedIterator<Item = &Arg> {
    words.iter().filter(|word| !word.start().starts_with('-'))
}

/// `-xzf` has the letter `x`.
fn has_letter(word: &Arg, letters: &str) -> bool {
    let text = word.start();
    text.starts_with('-') && !text.starts_with("--") && text.contains(|c| letters.contains(c))
}

/// `-d` and `--directory`, alone, with a value behind it, or among other letters.
pub(super) fn is_given(words: &[Arg], options: &str) -> bool {
    options.split_whitespace().any(|option| {
        words.iter().any(|word| {
            let name = word.start().split('=').next().unwrap_or_default();
            name == option || option.len() == 2 && has_letter(word, option.trim_start_matches('-'))
        })
    })
}

impl UnnamedWrites {
    fn writes(&self, words: &[Arg]) -> bool {
        let mut own = words.iter();
        let is_operation = self.verbs.split_whitespace().all(|verb| own.any(|word| word.is(verb)));
        let is_asked = match self.when {
            WritesWhen::Always => true,
            WritesWhen::Word(any) => any.split(' ').any(|verb| words.iter().any(|word| word.is(verb))),
            WritesWhen::Letter(letters) => {
                let is_first =
                    |first: &Arg| !first.start().starts_with("--") && first.start().contains(|c| letters.contains(c));
                words.first().is_some_and(is_first) || words.iter().any(|word| has_letter(word, letters))
            }
        };
        is_operation && is_asked && !is_given(words, self.unless)
    }

    fn add(&self, words: &[Arg], reading: &mut Reading) {
        if self.is_last {
            let is_here = |word: &&Arg| !word.start().contains(':');
            // The verbs and one source come before it.
            let least = self.verbs.split_whitespace().count() + 1;
            if let Some(last) = operands(words).skip(least).last().filter(is_here) {
                reading.files.push(FileUse::new(FileAccess::Write, last.clone()));
                reading.writes_in.push(last.clone());
            }
            return;
        }
        reading.writes_in.push(named_by(words, self.folder).pop().unwrap_or_else(|| Arg::text(".")));
    }
}

fn unpacked(words: &[Arg], letter: &str, endings: &[&str], reading: &mut Reading) {
    let long = ["--decompress", "--uncompress"];
    let unpacks = letter.is_empty()
        || words.iter().any(|word| has_letter(word, letter) || long.iter().any(|option| word.is(option)));
    if !unpacks || is_given(words, "-c -t -l --stdout --to-stdout --test --list") {
        return;
    }
    let names = operands(words).filter_map(Arg::literal).filter_map(|name| {
        let packed = endings.iter().find_map(|ending| name.strip_suffix(ending));
        packed.map(str::to_owned).or_else(|| name.strip_suffix(".tgz").map(|name| format!("{name}.tar")))
    });
    reading.files.extend(names.map(|name| FileUse::new(FileAccess::Write, Arg::text(&name))));
}

/// `perl -pi -e CODE FILE` writes the file.
fn changed_in_place(words: &[Arg], reading: &mut Reading) {
    let (mut in_place, mut has_code, mut files) = (false, false, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.start();
        if !text.starts_with('-') {
            files.push(word.clone());
            continue;
        }
        in_place |= has_letter(word, "i");
        if !text.starts_with("--") && text.ends_with(['e', 'E']) {
            has_code = true;
            words.next();
        }
    }
    if in_place && has_code {
        reading.files.extend(files.into_iter().map(|file| FileUse::new(FileAccess::Write, file)));
    }
}
