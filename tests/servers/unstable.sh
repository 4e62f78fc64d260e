# shellcheck shell=bash
# How a server is brought out of Debian's unstable into a folder, with a C library of its own: nothing is installed, and
# apt-get works on lists and an empty status in that folder. From the mirror of this system, by its proxies.
#
# Sourced by the script of each server, which then calls `fetch DIR NAME`, and before that defines
#   take_packages   has apt-get load what is needed: calls `load PACKAGE…`, or apt-get itself
#   write_start     writes the programs of NAME, which start $dir/root/… by "${linker[@]}"; $dir/NAME last

# shellcheck disable=SC2154
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

die() {
  echo "${0##*/}: $1" >&2
  exit 1
}

configure() {
  local mirror
  # shellcheck disable=SC2016  # the format is apt-get's
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | grep -m 1 '/debian/$') ||
    die "the sources of apt name no mirror of Debian"
  mkdir -p "$dir"/apt/{etc/apt/{apt.conf.d,sources.list.d,preferences.d},lists/partial,cache/archives/partial}
  : >"$dir/apt/status"
  echo "deb [signed-by=$keyring] $mirror unstable main" >"$dir/apt/etc/apt/sources.list"
  {
    apt-config dump --no-empty | grep '^Acquire::' | grep -v '::IndexTargets::' || true
    cat <<END
APT::Architecture "$(dpkg --print-architecture)";
APT::Install-Recommends "false";
Acquire::Retries "3";
Dir "$dir/apt";
Dir::State "$dir/apt";
Dir::State::status "$dir/apt/status";
Dir::Cache "$dir/apt/cache";
END
  } >"$dir/apt.conf"
}

# load PACKAGE…: with all that they depend on.
load() {
  apt-get -qq -y --download-only install "$@" libc6 >/dev/null
}

# write_program NAME: a program of what is read, which may use "${linker[0]}", the linker, and $libraries, where it looks.
write_program() {
  cat >"$dir/$1.new"
  chmod 755 "$dir/$1.new"
}

fetch() {
  local deb name=$2
  umask 022
  mkdir -p "$1"
  dir=$(realpath -- "$1")
  chmod a+rx "$dir"  # for the server's user
  if [[ ! -x $dir/$name ]]; then
    command -v apt-get >/dev/null || die "this is no Debian system"
    rm -rf "$dir/apt" "$dir/root"
    configure
    export APT_CONFIG=$dir/apt.conf
    apt-get -qq update
    take_packages
    for deb in "$dir"/apt/cache/archives/*.deb; do dpkg-deb --extract "$deb" "$dir/root"; done
    # shellcheck disable=SC2034  # for write_start
    linker=("$dir"/root/usr/lib*/ld-linux*.so.*)
    # shellcheck disable=SC2034
    libraries=("$dir"/root/usr/lib/*-linux-gnu*)
    write_start
    "$dir/$name.new" --version >&2
    rm -rf "$dir/apt"
    mv "$dir/$name.new" "$dir/$name"  # now all of it is there
  fi
  echo "$dir/$name"
}
