# Lets the key $key in as $user for $seconds seconds, and takes out keys whose time has passed. The
# line that it writes says itself until when it is good; who is killed in the middle leaves the file
# as it was.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
unset TZ
umask 077
cd / || exit 1

fail() {
    printf '::slipway failed %s %s\n' "$1" "$2"
    exit 1
}
for tool in awk date flock id mv; do
    command -v "$tool" >/dev/null || fail HOST-008 "the program $tool is missing"
done

home=$(getent passwd "$user" 2>/dev/null | awk -F: '{ print $6; exit }')
[ -n "$home" ] || home=$(awk -F: -v "user=$user" '$1 == user { print $6; exit }' /etc/passwd)
[ -d "$home" ] || fail HOST-021 "the user $user has no home"

# Where the SSH server looks for keys, the first place if there are several.
file=$(sshd -T -C "user=$user,host=localhost,addr=127.0.0.1" 2>/dev/null |
    awk 'tolower($1) == "authorizedkeysfile" { print $2; exit }')
case $file in
'') file=.ssh/authorized_keys ;;
none) fail HOST-012 'the SSH server reads no authorized_keys' ;;
esac
file=$(printf '%s\n' "$file" | awk -v "user=$user" -v "home=$home" '{
    gsub(/%h/, home); gsub(/%u/, user); gsub(/%%/, "%"); print }')
case $file in
/*) ;;
*) file=$home/$file ;;
esac
group=$(id -g "$user") || exit 1

# Another lock than that of tasks, which may take long: people come while they run.
(umask 022 && mkdir -p /var/lib/slipway) && exec 8</var/lib/slipway || exit 1
flock -w 10 8 || fail HOST-005 'others have been let in for ten seconds'
now=$(date +%s)
until=$((now + seconds))
# In the time of the host, which is what its SSH server compares it with.
stamp=$(date -d "@$until" +%Y%m%d%H%M%S) || exit 1
directory=${file%/*}
if [ ! -d "$directory" ]; then
    mkdir -p "$directory" && chown "$user:$group" "$directory" || exit 1
fi
# What is given back later is looked for here.
printf '%s\n' "$file" >/var/lib/slipway/guests || exit 1
if [ -e "$file" ]; then
    cp -p "$file" "$file.slipway" || exit 1
else
    : >"$file.slipway" && chown "$user:$group" "$file.slipway" || exit 1
fi
{
    [ ! -e "$file" ] || awk -v "now=$now" '
        match($NF, /^slipway-guest-until-[0-9]+$/) && substr($NF, 21) + 0 < now + 0 { next }
        { print }' "$file"
    printf 'expiry-time="%s" %s slipway-guest-until-%s\n' "$stamp" "$key" "$until"
} >"$file.slipway" || exit 1
mv -f "$file.slipway" "$file" || exit 1
printf '::slipway fact until %s\n' "$until"
