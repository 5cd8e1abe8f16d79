// The context of a search result is fetched from its page, which a browser does not do for a site in a folder.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
