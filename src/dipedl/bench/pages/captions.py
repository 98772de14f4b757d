"""Sentences of the benchmark's page that hold for one suite alone."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SuiteWords", "suite_words"]


@dataclass(frozen=True)
class SuiteWords:
    """What the detectors without a model are, how the protocol differs, and a limit."""

    trivial: str
    protocol: str
    limit: str


_WORDS = {
    "mnist": SuiteWords(
        trivial="“Border ink” is the mean of the outermost pixels, “mean intensity” that of all, "
        "“unusual mean intensity” its distance from that of training images; directions were fixed "
        "beforehand. MNIST digits stand in a black frame, characters of K-MNIST reach the border, "
        "and Omniglot as published is black on white. Where one of these does well, a high AUROC "
        "shows that the set is easy, not that a method is good; the inverted Omniglot, white on "
        "black as the digits are, is the fairer test.",
        protocol="Differences of the protocol itself: the paper's text and its released code "
        "disagree on the network behind its MNIST numbers (LeNet-5 in the text, a spectrally "
        "normalised ResNet-18 in the code); its flow density leaves out the Jacobian of the logit "
        "map and draws new pixel noise at every call, also when it is tested; there, mean and "
        "spread of the log-density come from training images. Which of these a method here shares "
        "is said in the suite's file.",
        limit="The foreign sets differ from MNIST in plain ways; see what detectors without a "
        "model reach.",
    ),
    "cifar10": SuiteWords(
        trivial="Each is the distance of one number of an image (brightness, contrast, mean "
        "difference between neighbours, tint) from its mean over training images; no direction is "
        "chosen. Where one of these does well, a high AUROC shows that the set is easy.",
        protocol="Differences of the protocol itself: the paper z-scores the log-density on the "
        "very rows that network and density were fitted on, which makes unseen images look rarer "
        "than they are; its Deep Ensemble starts all members from the same weights, since a reset "
        "of copies of a spectrally normalised network does not reach them; DAEDL's density sees "
        "augmented images there, DIP-EDL's clean ones. Here all methods see the same clean "
        "rows, and members start apart.",
        limit="CIFAR-100 has classes that are close to CIFAR-10's (pickup truck, bus); GTSRB "
        "stands in where SVHN cannot be had, in a third party's 32 x 32 form: its numbers are "
        "neither SVHN's nor GTSRB's as published.",
    ),
}
_SPECTRA_PROTOCOL = (
    "Differences of the protocol itself: the paper's features are unscaled (positions of extremes "
    "in 0 to 2,999 beside variances of 1e-8), its smoothing shifts every spectrum by half a "
    "sample, its networks take no account of 77 % galaxies, and it z-scores the log-density on "
    "the very rows "
    "that network and density were fitted on. The profile “published” keeps all of this; the "
    "others have standardised features and unshifted smoothing. PCA is fitted on training spectra."
)
_WORDS["spectra"] = SuiteWords(
    trivial="None: the features are no images.",
    protocol=_SPECTRA_PROTOCOL,
    limit="The spectra are semi-real: a generator knows fewer odd objects than the sky, so that "
    "real numbers will be lower. The real galaxies and quasars are few, one an object, and mostly "
    "of another survey than the noise of the generator; the real stars are mostly LAMOST's, so "
    "that class and instrument are confounded. Accuracy without the recall of each class says "
    "little: three of four known spectra are galaxies.",
)
_WORDS["lamost"] = SuiteWords(
    trivial="None: the features are no images.",
    protocol=_SPECTRA_PROTOCOL,
    limit="887 known spectra against 95,562 stars: the AUPR of guessing is .99, so read AUROC and "
    "FPR95; three of four known spectra are galaxies, so read recall beside accuracy.",
)
_OTHER = SuiteWords(
    trivial="Detectors that look at no shape; directions were fixed beforehand.",
    protocol="What a method here shares with its paper is said in the suite's file.",
    limit="Foreign sets may differ in plain ways; see what detectors without a model reach.",
)


def suite_words(suite: str) -> SuiteWords:
    """The sentences of a suite, by its name."""
    return _WORDS.get(suite, _OTHER)
