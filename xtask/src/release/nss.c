/* Linked into the static release binary when its C library is glibc.
 *
 * Looking up a name, glibc follows /etc/nsswitch.conf and loads the modules named there, built for
 * the C library of that machine. Loaded into a static program with another one they crash it. The
 * modules named here are part of the program, and no others are asked. */

#include <nss.h>

__attribute__((constructor)) static void ask_only_what_is_built_in(void)
{
    __nss_configure_lookup("hosts", "files dns");
    __nss_configure_lookup("passwd", "files");
    __nss_configure_lookup("group", "files");
    __nss_configure_lookup("initgroups", "files");
    __nss_configure_lookup("services", "files");
    __nss_configure_lookup("protocols", "files");
}
