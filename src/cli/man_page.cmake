# cmake -DSOURCE= -DOPTIONS_FILE= -DATTUNE_VERSION= -DTARGET= -P: puts the options into the man page.
file(READ ${OPTIONS_FILE} OPTIONS)
string(REGEX REPLACE "\n$" "" OPTIONS "${OPTIONS}")
configure_file(${SOURCE} ${TARGET} @ONLY)
