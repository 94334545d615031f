# Untried. Builds from source: nix build ./.ci/packages
{
  inputs.nixpkgs.url = "nixpkgs/nixos-unstable";
  outputs = { nixpkgs, ... }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      package = system:
        let pkgs = nixpkgs.legacyPackages.${system};
        in pkgs.rustPlatform.buildRustPackage {
          pname = "toold";
          version = (builtins.fromTOML (builtins.readFile ../../Cargo.toml)).workspace.package.version;
          src = ../../.;
          cargoLock.lockFile = ../../Cargo.lock;
          cargoBuildFlags = [ "-p" "toold" "-p" "toolctl" "--features" "toold/fleet,toold/trace" ];
          # The tests start daemons, editors and browsers.
          doCheck = false;
          meta = {
            description = "One daemon that holds the tools of all your agents, editors and shells";
            license = pkgs.lib.licenses.mit;
            mainProgram = "toolctl";
          };
        };
    in { packages = nixpkgs.lib.genAttrs systems (system: { default = package system; }); };
}
