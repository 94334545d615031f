# Untried. The release workflow fills in OWNER, VERSION and the sums.
class Toold < Formula
  desc "One daemon that holds the tools of all your agents, editors and shells"
  homepage "https://github.com/OWNER/toold"
  version "VERSION"
  license "MIT"

  on_macos do
    on_arm do
      url "https://github.com/OWNER/toold/releases/download/vVERSION/toold-VERSION-aarch64-apple-darwin.tar.gz"
      sha256 "SUM_AARCH64_APPLE_DARWIN"
    end
    on_intel do
      url "https://github.com/OWNER/toold/releases/download/vVERSION/toold-VERSION-x86_64-apple-darwin.tar.gz"
      sha256 "SUM_X86_64_APPLE_DARWIN"
    end
  end

  on_linux do
    on_arm do
      url "https://github.com/OWNER/toold/releases/download/vVERSION/toold-VERSION-aarch64-unknown-linux-musl.tar.gz"
      sha256 "SUM_AARCH64_UNKNOWN_LINUX_MUSL"
    end
    on_intel do
      url "https://github.com/OWNER/toold/releases/download/vVERSION/toold-VERSION-x86_64-unknown-linux-musl.tar.gz"
      sha256 "SUM_X86_64_UNKNOWN_LINUX_MUSL"
    end
  end

  def install
    bin.install "toold", "toolctl"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/toolctl.bash" => "toolctl"
    zsh_completion.install "completions/_toolctl"
    fish_completion.install "completions/toolctl.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/toolctl --version")
  end
end
