//! Options by which programs that no table describes run a command, load code, or read such options from a file. A pattern
//! for such a program covers any words but these.

use super::Reading;
use super::written_files::named_by;
use crate::shell_grammar::arg::Arg;

/// Programs with their options, by the programs' own manuals. A long option also counts with a value behind `=` and
/// abbreviated, and one of a single letter within a bundle. One that ends with `:`, `=` or `|`, and `@`, is what a word begins
/// with, and so is an option of several letters behind one dash.
const OPTIONS: &[(&str, &str)] = &[
    (
        "java",
        "@ -javaagent: -agentlib: -agentpath: -Xbootclasspath -Xrun -XX:OnError= -XX:OnOutOfMemoryError= -XX:Flags= \
         -XX:VMOptionsFile= -Djava.system.class.loader= -Djava.library.path= --patch-module",
    ),
    ("javac", "@ -J -processor -processorpath --processor-path --processor-module-path -Xplugin:"),
    ("javadoc jar jshell jlink jpackage jdeps javap keytool jarsigner", "@ -J -doclet -taglet -provider --startup"),
    ("kotlin kotlinc kotlinc-jvm", "@ -J -Xplugin= -script"),
    ("scala scalac", "@ -J -Xplugin: -toolcp"),
    ("dpkg", "--pre-invoke --post-invoke --status-logger --admindir --instdir --root"),
    (
        "dpkg-buildpackage debuild",
        "-r -p -R --root-command --sign-command --check-command --rules-file --hook- --prepend-path --preserve-envvar",
    ),
    ("apt apt-get aptitude apt-cache apt-mark apt-config", "-o --option -c --config-file"),
    ("dnf dnf5 yum microdnf tdnf", "-c --config --setopt --installroot --enableplugin"),
    ("rpm rpmbuild rpmspec rpmsign", "-D -E --define --eval --load --macros --rcfile --pipe --predefine --root"),
    ("zypper", "-c -R --config --root --installroot --reposd-dir --plus-repo --plus-content"),
    ("pacman yay paru", "--config --hookdir --root --sysroot --editor --makepkg --git --gpg --mflags"),
    ("gem", "--config-file"),
    ("ld ld.bfd ld.gold ld.lld lld gold mold", "@ -plugin --plugin -load -run --run -fuse-ld"),
    ("as nasm yasm", "@"),
    ("clang-tidy opt llc lli", "@ -load --load --config-file"),
    ("rustdoc", "@ -C -Z --codegen --runtool --test-runtool --test-builder"),
    ("gs ghostscript", "@ -c -I -dNOSAFER -dDELAYSAFER -sOutputFile=% -sOutputFile=| -o% -o| --permit-file"),
    (
        "tex pdftex latex pdflatex xetex xelatex luatex lualatex",
        "-shell-escape --shell-escape -enable-write18 --enable-write18 -fmt --fmt -cnf-line --cnf-line -output-driver \
         --output-driver -translate-file -lua --lua",
    ),
    ("latexmk", "-e -r -latex= -pdflatex= -lualatex= -xelatex= -shell-escape --shell-escape -use-make"),
    ("pandoc", "-F -L -d --filter --lua-filter --pdf-engine --defaults --data-dir"),
    ("aria2c", "--on- --conf-path --input-file"),
    (
        "yt-dlp youtube-dl",
        "--exec --netrc-cmd --config-location --plugin-dirs --downloader --external-downloader --postprocessor-args \
         --ppa --ffmpeg-location --use-postprocessor --alias",
    ),
    ("rclone", "--config --password-command --sftp-ssh --sftp-server-command --metadata-mapper"),
    ("restic", "-o --option --password-command"),
    ("borg", "--rsh --remote-path"),
    ("tcpdump", "-z --postrotate-command"),
    ("tshark wireshark", "-X"),
    ("openssl", "-engine -provider-path -config"),
    (
        "gpg gpg2 gpgsm gpg-agent",
        "--exec-path --photo-viewer --options --homedir --agent-program --dirmngr-program --keyboxd-program \
         --pinentry-program --scdaemon-program --load-extension",
    ),
    ("ssh-keygen", "-D -w"),
    ("pg_ctl initdb", "-p -o -c --options --set"),
    (
        "mysqldump mysqladmin mysqlimport mysqlcheck mariadb-dump mysqld",
        "--defaults-file --defaults-extra-file --plugin-dir --plugin-load --default-auth --login-path --init-file",
    ),
    ("nginx", "-c -g -p"),
    ("httpd apache2", "-c -C -f"),
    ("redis-server", "--loadmodule"),
    ("kustomize", "--enable-exec --enable-alpha-plugins --enable-helm --helm-command"),
    ("svn", "--config-option --config-dir --diff-cmd --diff3-cmd --editor-cmd"),
    ("hg", "-R --repository --config"),
    ("sshfs", "-o -F"),
    ("w3m lynx elinks links", "-config -cfg --cfg -o"),
];

/// Options with the version of an interpreter, or with the path of one.
const INTERPRETERS: &[(&str, &str)] = &[("pipenv", "--python"), ("tox", "--discover"), ("virtualenv", "-p --python")];

/// Adds the doubt about the first such option, and about a word of which the shell may make one.
pub(super) fn judge(name: &str, words: &[Arg], reading: &mut Reading) {
    let interpreters = INTERPRETERS.iter().filter(|(program, _)| *program == name);
    let named = interpreters.flat_map(|(_, options)| named_by(words, options));
    if let Some(path) = named.into_iter().find(|value| value.start().contains('/') || value.literal().is_none()) {
        reading.may_run_any = true;
        return reading.doubt(format!("it runs the program {}", path.raw));
    }
    let is_it = |(names, _): &&(&str, &str)| names.split(' ').any(|known| known == name);
    let Some((_, options)) = OPTIONS.iter().find(is_it) else { return };
    for word in words.iter().take_while(|word| !word.is("--")) {
        if word.may_become_option() {
            reading.may_run_any = true;
            return reading.doubt(format!("{} may expand to an option of {name} that runs something", word.raw));
        }
        if options.split_whitespace().any(|option| is_given(option, word.start())) {
            reading.may_run_any = true;
            return reading.doubt(format!("{} may run a program, or load code", word.raw));
        }
    }
}

/// Whether a word is the option, or has it among others.
fn is_given(option: &str, word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    let is_long = option.starts_with("--");
    let is_letter = option.len() == 2 && option.starts_with('-');
    match (is_long, is_letter) {
        (true, _) => word.starts_with(option) || name.len() > 3 && option.starts_with(name),
        (false, true) => {
            let letter = option.trim_start_matches('-');
            word.starts_with('-') && !word.starts_with("--") && word.contains(letter)
        }
        (false, false) => word.starts_with(option),
    }
}
