"""The documents as a site: pages in order, a reference made from the code, links checked."""
