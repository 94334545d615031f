#!/bin/sh
# Installs toold from the archive that this script is in, without root:
#
#     sh install.sh [--prefix DIR]     DIR defaults to ~/.local
#
# Checks the sums of all files first. DIR/share/toold/uninstall.sh removes what it installed.
set -eu
umask 022
here=$(cd "$(dirname "$0")" && pwd)
prefix=$HOME/.local
while [ $# -gt 0 ]; do
    case $1 in
        --prefix) prefix=${2:?--prefix: expected a folder}; shift 2 ;;
        *) echo "install.sh: expected --prefix DIR, not $1" >&2; exit 2 ;;
    esac
done
case $prefix in
    /*) ;;
    *) prefix=$PWD/$prefix ;;
esac
cd "$here"
sum() { if command -v sha256sum >/dev/null 2>&1; then sha256sum "$@"; else shasum -a 256 "$@"; fi; }
if ! sum -c SHA256SUMS >/dev/null 2>&1; then
    echo "install.sh: the files are not those that SHA256SUMS names; unpack the archive again" >&2
    sum -c SHA256SUMS 2>/dev/null | grep -v ': OK$' >&2 || true
    exit 1
fi
if ! ./toolctl --version >/dev/null 2>&1; then
    echo "install.sh: the programs do not run here ($(uname -sm)); take the archive for this system, or the static one" >&2
    exit 1
fi

list=$prefix/share/toold/installed
mkdir -p "$prefix/share/toold"
# put FILE FOLDER MODE: replaces a program that is running, too.
put() {
    mkdir -p "$prefix/$2"
    cp "$1" "$prefix/$2/.new-$$"
    chmod "$3" "$prefix/$2/.new-$$"
    mv "$prefix/$2/.new-$$" "$prefix/$2/$(basename "$1")"
    echo "$2/$(basename "$1")" >>"$list.new"
}
: >"$list.new"
put toold bin 755
put toolctl bin 755
for page in man/*.1; do put "$page" share/man/man1 644; done
put completions/_toolctl share/zsh/site-functions 644
put completions/toolctl.fish share/fish/vendor_completions.d 644
put config.schema.json share/toold 644
put LICENSE share/toold 644
mkdir -p "$prefix/share/bash-completion/completions"
cp completions/toolctl.bash "$prefix/share/bash-completion/completions/toolctl"
echo share/bash-completion/completions/toolctl >>"$list.new"
mkdir -p "$prefix/share/systemd/user"
for unit in systemd/*; do
    sed "s|^ExecStart=/usr/bin/|ExecStart=$prefix/bin/|" "$unit" >"$prefix/share/systemd/user/$(basename "$unit")"
    echo "share/systemd/user/$(basename "$unit")" >>"$list.new"
done
cat >"$prefix/share/toold/uninstall.sh" <<UNINSTALL
#!/bin/sh
# Removes the programs that install.sh installed. What you wrote stays: toolctl setup --undo --purge packs and removes that.
set -eu
prefix=\$(cd "\$(dirname "\$0")/../.." && pwd)
[ ! -x "\$prefix/bin/toolctl" ] || "\$prefix/bin/toolctl" --no-start stop >/dev/null 2>&1 || true
while read -r file; do rm -f "\$prefix/\$file"; done <"\$prefix/share/toold/installed"
rm -f "\$prefix/share/toold/installed" "\$prefix/share/toold/uninstall.sh"
rmdir "\$prefix/share/toold" 2>/dev/null || true
UNINSTALL
mv "$list.new" "$list"
echo "installed $("$prefix/bin/toolctl" --version) in $prefix/bin"
case :$PATH: in
    *:"$prefix/bin":*) ;;
    *) echo "add it to your PATH:  export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
echo "next:  toolctl setup"
